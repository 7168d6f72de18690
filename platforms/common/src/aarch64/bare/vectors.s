// Exception vectors of EL1. Included by exceptions.rs.
//
// Everything but exceptions runs on SP_EL0, so "current level with SP0" are the entries that
// matter; an exception taken on SP_EL1 came out of a handler.

.macro vector kind
    .balign 0x80
    sub     sp, sp, #288
    stp     x0, x1, [sp, #0]
    mov     x0, #\kind
    b       save_and_report
.endm

.section .text.vectors, "ax"
.balign 0x800
.global rootport_vectors
rootport_vectors:
    vector  0                       // current level with SP0: synchronous
    .balign 0x80                    // IRQ
    sub     sp, sp, #160
    stp     x0, x1, [sp, #0]
    b       interrupt
    vector  2                       // FIQ
    vector  3                       // SError
    // Current level with SPx: out of a handler. The stack starts over: it may be what failed.
.rept 4
    .balign 0x80
    ldr     x0, =__exception_stack_end
    mov     sp, x0
    bl      rootport_nested_exception
.endr
    vector  8                       // lower levels: none runs
    vector  9
    vector  10
    vector  11
    vector  12
    vector  13
    vector  14
    vector  15
    .balign 0x80

// x2 to x30, then ELR, SPSR, ESR, FAR and the interrupted stack pointer: `Frame` of exceptions.rs.
.macro save_rest
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x19, [sp, #144]
    stp     x20, x21, [sp, #160]
    stp     x22, x23, [sp, #176]
    stp     x24, x25, [sp, #192]
    stp     x26, x27, [sp, #208]
    stp     x28, x29, [sp, #224]
    mrs     x1, elr_el1
    stp     x30, x1, [sp, #240]
    mrs     x1, spsr_el1
    mrs     x2, esr_el1
    stp     x1, x2, [sp, #256]
    mrs     x1, far_el1
    mrs     x2, sp_el0
    stp     x1, x2, [sp, #272]
.endm

save_and_report:
    save_rest
    mov     x1, x0
    mov     x0, sp
    bl      rootport_exception
1:  wfe
    b       1b

// What a function of the C ABI may change; it saves the rest itself (AAPCS64 section 6.1.1). ELR and SPSR
// stay: interrupts are masked, and from a nested exception nobody comes back.
interrupt:
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x30, [sp, #144]
    bl      rootport_interrupt
    ldp     x0, x1, [sp, #0]
    ldp     x2, x3, [sp, #16]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x9, [sp, #64]
    ldp     x10, x11, [sp, #80]
    ldp     x12, x13, [sp, #96]
    ldp     x14, x15, [sp, #112]
    ldp     x16, x17, [sp, #128]
    ldp     x18, x30, [sp, #144]
    add     sp, sp, #160
    eret
    .ltorg
