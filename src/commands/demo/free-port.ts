import { createServer } from 'node:net'

/** `wanted` if nothing listens on that port of 127.0.0.1, else 0, which asks the kernel for any free one. */
export function portOrAny(wanted: number): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(0))
    probe.listen(wanted, '127.0.0.1', () => probe.close(() => resolve(wanted)))
  })
}
