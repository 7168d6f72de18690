// The first instructions: the arm64 Image header, then the way from the boot loader's state to
// Rust on a stack. Included by entry.rs, which says what holds on arrival and what is promised.
//
// Registers kept throughout: x19 device tree pointer, x20 exception level of entry (1 or 2).

.section .text.head, "ax"

// arm64 boot protocol, "Call the kernel image": 64 bytes.
.global _start
_start:
    b       entry                   // code0
    .long   0                       // code1
    .quad   BOARD_TEXT_OFFSET       // text_offset, from a 2 MiB aligned base
    .quad   __image_size            // image_size, with everything that is memory only
    .quad   0x2                     // flags: little endian, 4 KiB pages, stay near the RAM base
    .quad   0                       // res2
    .quad   0                       // res3
    .quad   0                       // res4
    .ascii  "ARM\x64"               // magic
    .long   0                       // res5

.section .text.entry, "ax"
entry:
    msr     daifset, #0xf
    mov     x19, x0

    adr     x1, entry
    ldr     x2, =entry
    adr     x3, wrong_address
    cmp     x1, x2
    b.ne    refuse

    mrs     x20, CurrentEL
    lsr     x20, x20, #2
    adr     x3, wrong_level
    cmp     x20, #2
    b.hi    refuse

    // What a boot loader left dirty in the caches must not come down on us later.
    bl      clean_image
    cmp     x20, #2
    b.eq    1f
    mrs     x0, sctlr_el1
    bl      without_mmu
    msr     sctlr_el1, x0
    isb
    tlbi    vmalle1
    b       2f
1:  mrs     x0, sctlr_el2
    bl      without_mmu
    msr     sctlr_el2, x0
    isb
    tlbi    alle2
2:  ic      iallu
    dsb     nsh
    isb
    // Lines fetched between the cleaning and the switching off would hide what is written now.
    bl      clean_image

    ldr     x0, =__bss_start
    ldr     x1, =__bss_end
3:  cmp     x0, x1
    b.hs    4f
    stp     xzr, xzr, [x0], #16
    b       3b
4:
    // At EL2 only Rust's `prepare_el1` runs on this stack; EL1 starts it afresh.
    ldr     x0, =__main_stack_end
    mov     sp, x0
    cmp     x20, #2
    b.ne    at_el1
    adr     x0, at_el1
    bl      rootport_prepare_el1
    eret

at_el1:
    // Exceptions have a stack of their own (SP_EL1); everything else runs on SP_EL0.
    msr     spsel, #1
    ldr     x0, =__exception_stack_end
    mov     sp, x0
    msr     spsel, #0
    ldr     x0, =__main_stack_end
    mov     sp, x0
    mov     x29, xzr
    mov     x30, xzr
    mov     x0, x19
    mov     x1, x20
    bl      rootport_start
    b       park

// SCTLR_ELx in x0 without M (bit 0), C (bit 2) and I (bit 12), for either level.
without_mmu:
    bic     x0, x0, #(1 << 0)
    bic     x0, x0, #(1 << 2)
    bic     x0, x0, #(1 << 12)
    ret

// Cleans and invalidates the image's whole memory to the point of coherency, by the smallest data
// cache line of the system (CTR_EL0.DminLine, log2 of words). Uses x0 to x3.
clean_image:
    mrs     x2, ctr_el0
    ubfx    x2, x2, #16, #4
    mov     x3, #4
    lsl     x3, x3, x2
    ldr     x0, =__image_start
    ldr     x1, =__image_end
1:  dc      civac, x0
    add     x0, x0, x3
    cmp     x0, x1
    b.lo    1b
    dsb     sy
    ret

// Says why at the board's UART and stops. x3: zero-terminated text. One byte per 200 us or so, at
// any counter frequency up to 100 MHz, since the transmitter's state is not looked at.
refuse:
    ldr     x4, =BOARD_EARLY_UART
1:  ldrb    w5, [x3], #1
    cbz     w5, park
    str     w5, [x4]
    mov     x6, #20000
2:  subs    x6, x6, #1
    b.ne    2b
    b       1b

park:
    wfe
    b       park

wrong_address:
    .asciz  "\r\nrootport: not at the address that this image is linked for; load it by booti or as ELF\r\n@fail reason=loaded at the wrong address\r\n"
wrong_level:
    .asciz  "\r\nrootport: entered at EL3; this image starts at EL2 or EL1\r\n@fail reason=entered at EL3\r\n"
    .balign 4
    .ltorg
