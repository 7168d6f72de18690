// The first instructions: the way from the boot loader's state to Rust on a stack. Included by
// entry.rs, which says what holds on arrival and what is promised.
//
// Registers kept throughout: r8, r9, r10 the boot loader's r0, r1, r2; r11 the mode of entry, and from
// bit 8 on what was in SCTLR or HSCTLR then.

.arch_extension virt
.arch_extension sec

.equ MODE_FIQ, 0x11
.equ MODE_IRQ, 0x12
.equ MODE_SVC, 0x13
.equ MODE_ABT, 0x17
.equ MODE_HYP, 0x1a
.equ MODE_UND, 0x1b
// A, I and F masked.
.equ ALL_MASKED, 0x1c0

.section .text.head, "ax"
.arm
.global _start
_start:
    cpsid   aif
    mov     r8, r0
    mov     r9, r1
    mov     r10, r2

    adr     r0, _start
    ldr     r1, =_start
    adr     r3, wrong_address
    cmp     r0, r1
    bne     refuse
    mrs     r11, cpsr
    and     r11, r11, #0x1f
    adr     r3, wrong_mode
    cmp     r11, #MODE_SVC
    cmpne   r11, #MODE_HYP
    bne     refuse

    // What a boot loader left dirty in the caches must not come down on us later, and what it
    // wrote for us (words, device tree) must be in memory before the caches are off.
    bl      clean_caches
    cmp     r11, #MODE_HYP
    beq     1f
    mrc     p15, 0, r0, c1, c0, 0   // SCTLR
    orr     r11, r11, r0, lsl #8
    bl      without_mmu
    mcr     p15, 0, r0, c1, c0, 0
    isb
    mcr     p15, 0, r0, c8, c7, 0   // TLBIALL
    b       2f
1:  mrc     p15, 4, r0, c1, c0, 0   // HSCTLR
    orr     r11, r11, r0, lsl #8
    bl      without_mmu
    mcr     p15, 4, r0, c1, c0, 0
    isb
    mcr     p15, 4, r0, c8, c7, 0   // TLBIALLH
    mcr     p15, 4, r0, c8, c7, 4   // TLBIALLNSNH
2:  mcr     p15, 0, r0, c7, c5, 0   // ICIALLU
    mcr     p15, 0, r0, c7, c5, 6   // BPIALL
    dsb
    isb
    // Lines fetched between the cleaning and the switching off would hide what is written now.
    bl      clean_caches

    ldr     r0, =__bss_start
    ldr     r1, =__bss_end
    mov     r2, #0
3:  cmp     r0, r1
    strlo   r2, [r0], #4
    blo     3b

    // In Hyp mode only Rust's `prepare_svc` runs on this stack; supervisor mode starts it afresh.
    ldr     sp, =__main_stack_end
    and     r0, r11, #0x1f
    cmp     r0, #MODE_HYP
    bne     in_svc
    bl      rootport_prepare_svc
    adr     r0, in_svc
    msr     elr_hyp, r0
    mov     r0, #(ALL_MASKED | MODE_SVC)
    msr     spsr_cxsf, r0
    eret

in_svc:
    // Interrupts have a stack of their own; so has everything that is reported and never returns.
    ldr     r0, =__exception_stack_end
    cps     #MODE_ABT
    mov     sp, r0
    cps     #MODE_UND
    mov     sp, r0
    cps     #MODE_FIQ
    mov     sp, r0
    ldr     r0, =__interrupt_stack_end
    cps     #MODE_IRQ
    mov     sp, r0
    cps     #MODE_SVC
    ldr     sp, =__main_stack_end
    mov     r0, r8
    mov     r1, r9
    mov     r2, r10
    mov     r3, r11
    mov     r11, #0
    bl      rootport_start
    b       park

// SCTLR or HSCTLR in r0 without M (bit 0), C (bit 2) and I (bit 12); and without TE (bit 30): Rust's
// code is in Thumb state, our vectors are not.
without_mmu:
    bic     r0, r0, #(1 << 0)
    bic     r0, r0, #(1 << 2)
    bic     r0, r0, #(1 << 12)
    bic     r0, r0, #(1 << 30)
    bx      lr

// Cleans and invalidates every data cache up to the point of coherency by set and way (DDI 0406C
// §B2.2.7); one core runs, and the caches of this processor are all of the system's. Uses r0 to
// r7 and r12.
clean_caches:
    dmb
    mrc     p15, 1, r0, c0, c0, 1   // CLIDR
    ubfx    r1, r0, #24, #3         // level of coherency
    mov     r2, #0                  // twice the level, as CSSELR and DCCISW want it
1:  cmp     r2, r1, lsl #1
    bhs     5f
    add     r3, r2, r2, lsr #1
    lsr     r3, r0, r3
    and     r3, r3, #7
    cmp     r3, #2                  // 0: none, 1: instructions only
    blo     4f
    mcr     p15, 2, r2, c0, c0, 0   // CSSELR
    isb
    mrc     p15, 1, r3, c0, c0, 0   // CCSIDR
    and     r4, r3, #7
    add     r4, r4, #4              // log2 of the bytes in a line
    ubfx    r5, r3, #3, #10         // ways - 1
    ubfx    r6, r3, #13, #15        // sets - 1
    clz     r7, r5                  // where the way goes
2:  mov     r3, r6
3:  lsl     r12, r5, r7
    orr     r12, r12, r3, lsl r4
    orr     r12, r12, r2
    mcr     p15, 0, r12, c7, c14, 2 // DCCISW
    subs    r3, r3, #1
    bpl     3b
    subs    r5, r5, #1
    bpl     2b
4:  add     r2, r2, #2
    b       1b
5:  mov     r2, #0
    mcr     p15, 2, r2, c0, c0, 0   // CSSELR
    dsb
    isb
    bx      lr

// Says why at the board's UART and stops. r3: zero-terminated text. One byte per 200 us or so,
// since the transmitter's state is not looked at.
refuse:
    ldr     r4, =BOARD_EARLY_UART
1:  ldrb    r5, [r3], #1
    cmp     r5, #0
    beq     park
    str     r5, [r4]
    ldr     r6, =200000
2:  subs    r6, r6, #1
    bne     2b
    b       1b

park:
    wfi
    b       park

wrong_address:
    .asciz  "\r\nrootport: not at the address that this image is linked for; load it there\r\n@fail reason=loaded at the wrong address\r\n"
wrong_mode:
    .asciz  "\r\nrootport: this image starts in supervisor or Hyp mode, by go, bootm or as ELF\r\n@fail reason=entered in the wrong mode\r\n"
    .balign 4
    .ltorg
