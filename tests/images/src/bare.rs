//! The story as a bare-metal image: started by qemu through the PVH entry, text through the serial
//! port.

#![no_std]
#![no_main]

mod memory;
mod platform;
mod story;

#[cfg(feature = "alloc")]
mod heap;

use core::arch::global_asm;

use platform::pvh as machine;

// The PVH entry is in 32-bit protected mode without paging. Map the first GiB to itself with 2 MiB
// pages, switch on SSE (Rust code for x86-64 uses it) and long mode, and go on in 64-bit code.
global_asm!(
    r#"
    .section .note.pvh, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long pvh_start

    .section .bss.boot, "aw", @nobits
    .balign 4096
boot_pml4:  .skip 4096
boot_pdpt:  .skip 4096
boot_pd:    .skip 4096
boot_stack: .skip 65536
boot_stack_top:

    .section .rodata.boot, "a"
    .balign 8
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff
    .quad 0x00cf93000000ffff
boot_gdt_end:
boot_gdt_pointer:
    .word boot_gdt_end - boot_gdt - 1
    .long boot_gdt

    .section .text.boot, "ax"
    .code32
    .globl pvh_start
pvh_start:
    cli
    cld
    movl $boot_stack_top, %esp

    movl $boot_pdpt + 3, boot_pml4
    movl $boot_pd + 3, boot_pdpt
    movl $boot_pd, %edi
    movl $0x83, %eax
    movl $512, %ecx
1:  movl %eax, (%edi)
    addl $0x200000, %eax
    addl $8, %edi
    decl %ecx
    jnz 1b

    movl $boot_pml4, %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x620, %eax
    movl %eax, %cr4
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    andl $0xfffffffb, %eax
    orl $0x80000002, %eax
    movl %eax, %cr0
    lgdt boot_gdt_pointer
    ljmp $8, $boot_long

    .code64
boot_long:
    movl $16, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl $boot_stack_top, %esp
    xorl %ebp, %ebp
    call {main}
    ud2
    .text
    "#,
    main = sym main,
    options(att_syntax),
);

extern "C" fn main() -> ! {
    machine::exit(story::tell(&mut machine::Output))
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    platform::report_panic(info, &mut machine::Output);
    machine::exit(false)
}
