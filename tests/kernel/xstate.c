/* Preloaded into user-mode-linux 6.1, which keeps the extended CPU state of its processes in an
 * area that is too small for CPUs with AMX: there the host refuses, with EFAULT, to set a part of
 * it. So the area is filled up with what the process has already. Where it is large enough,
 * nothing changes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PEEKTEXT = 1, PEEKUSER = 3, GETREGSET = 0x4204, SETREGSET = 0x4205, X86_XSTATE = 0x202 };

static char area[1 << 16] __attribute__((aligned(64)));

long ptrace(int request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    int pid = va_arg(arguments, int);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);

    if (request == SETREGSET && (long)address == X86_XSTATE) {
        struct iovec *given = data, whole = {area, sizeof area};
        if (syscall(SYS_ptrace, GETREGSET, pid, address, &whole) < 0)
            return -1;
        if (whole.iov_len > given->iov_len) {
            memcpy(area, given->iov_base, given->iov_len);
            return syscall(SYS_ptrace, request, pid, address, &whole);
        }
    }
    if (request >= PEEKTEXT && request <= PEEKUSER) {
        /* The C library returns the word; the system call stores it. */
        long word;
        if (syscall(SYS_ptrace, request, pid, address, &word) < 0)
            return -1;
        errno = 0;
        return word;
    }
    return syscall(SYS_ptrace, request, pid, address, data);
}
