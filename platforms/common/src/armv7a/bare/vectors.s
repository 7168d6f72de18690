// Exception vectors of supervisor mode, in ARM state: entry.s and mmu.rs leave SCTLR.TE zero, and the
// linker makes the calls to Rust, which is in Thumb state, change state. Included by exceptions.rs.

.section .text.vectors, "ax"
.arm
.balign 32
.global rootport_vectors
rootport_vectors:
    b       never
    b       undefined
    b       supervisor
    b       prefetch
    b       data
    b       never
    b       interrupt
    b       fast

never:
    wfi
    b       never

// r0 to r12 go where `Frame` of exceptions.rs has them; r0 becomes the vector's number.
.macro report vector
    sub     sp, sp, #72
    stm     sp, {r0-r12}
    mov     r0, #\vector
    b       save_and_report
.endm

undefined:
    report  1
supervisor:
    report  2
prefetch:
    report  3
data:
    report  4
fast:
    report  7

// The rest of `Frame`: stack pointer and link register of the interrupted mode, the address, SPSR.
save_and_report:
    str     lr, [sp, #60]
    mrs     r1, spsr
    str     r1, [sp, #64]
    add     r2, sp, #52
    mrs     r3, cpsr
    and     r4, r1, #0x1f
    cmp     r4, #0x10               // user mode: its registers are those of system mode
    moveq   r4, #0x1f
    orr     r4, r4, #0xc0
    msr     cpsr_c, r4
    mov     r5, sp
    mov     r6, lr
    msr     cpsr_c, r3
    stm     r2, {r5, r6}
    mov     r1, r0
    mov     r0, sp
    bl      rootport_exception
    b       never

// An interrupt must not leave an exclusive access of the interrupted code standing (DDI 0406C
// §A3.4.5).
interrupt:
    sub     lr, lr, #4
    push    {r0-r3, r12, lr}
    bl      rootport_interrupt
    clrex
    ldm     sp!, {r0-r3, r12, pc}^
    .ltorg
