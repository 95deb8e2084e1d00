/** The part of `node:ffi` that is used. */
type NativeFunctions = Pick<typeof import('node:ffi'), 'dlopen'>

/**
 * Returns a function that gives the free pages of the C library back to the system, or undefined where the library has none: only glibc
 * has `malloc_trim`. By itself glibc keeps every free page below one in use, after a flood of heads 95 MiB.
 */
export function freePagesOf({ dlopen }: NativeFunctions): (() => void) | undefined {
  try {
    const { functions } = dlopen(null, { malloc_trim: { arguments: ['u64'], return: 'i32' } })
    return () => void functions.malloc_trim(0n)
  } catch {
    return undefined
  }
}
