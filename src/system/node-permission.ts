/** The flag of Node that grants each permission; the first two take a path. */
const FLAGS: ReadonlyMap<unknown, string> = new Map([
  ['FileSystemRead', '--allow-fs-read='],
  ['FileSystemWrite', '--allow-fs-write='],
  ['Net', '--allow-net'],
  ['WorkerThreads', '--allow-worker'],
])

/** Whether it was not the system that refused, but Node, because of the flags that it was started with. */
export function isWithheld(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_ACCESS_DENIED'
}

/**
 * Why something failed, in the words of the system; or, where Node's permission model (`--permission`) refused it, the
 * flag that is missing, with the path.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const flag = isWithheld(error) && 'permission' in error ? FLAGS.get(error.permission) : undefined
  if (flag === undefined) return error.message
  const path = flag.endsWith('=') && 'resource' in error ? String(error.resource) : ''
  return `Node's permission model forbids it; start Node with ${flag}${path}`
}
