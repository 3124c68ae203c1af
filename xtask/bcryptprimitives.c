/* The one function of bcryptprimitives.dll that Rust's standard library imports, for wine before
 * 8.2, which has no such library (rust-lang/rust#128066). Built by `cargo xtask platforms`. */

#include <stddef.h>
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length)
{
    while (length > 0) {
        ULONG part = length > 0x10000000 ? 0x10000000 : (ULONG)length;
        if (!SystemFunction036(buffer, part))
            return FALSE;
        buffer += part;
        length -= part;
    }
    return TRUE;
}
