import { execFileSync } from 'node:child_process'

/** Debian's Chromium, from the PATH. Throws if it is not installed. */
export function chromiumPath(): string {
  return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim()
}
