import { readFileSync } from 'node:fs'

const MiB = 1 << 20

/**
 * Upper bound (bytes) on what the kernel and the streams on two connections of this machine hold for a reader that does not read. The
 * connection from which the sidecar read before it stalled has a receive buffer that the kernel has enlarged; the reader's own stays small.
 */
export const MOST_BUFFERED = largest('tcp_rmem', 6) + 2 * largest('tcp_wmem', 4) + 8 * MiB

/** The last of the three sizes (bytes) of a setting of Linux; elsewhere `usual` (MiB). */
function largest(setting: 'tcp_rmem' | 'tcp_wmem', usual: number): number {
  try {
    return Number(readFileSync(`/proc/sys/net/ipv4/${setting}`, 'utf8').trim().split(/\s+/).at(-1))
  } catch {
    return usual * MiB
  }
}
