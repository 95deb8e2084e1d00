import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { run } from '../support/tools.ts'

const ROOT = join(import.meta.dirname, '../..')

/** A clone of this checkout's last commit, without its packages. It is removed when the test ends. */
export async function cloneOfHead(): Promise<string> {
  const folder = join(temporaryDirectory(), 'postern')
  const { code, stderr } = await run('git', ['clone', '--quiet', ROOT, folder])
  if (code !== 0) throw new Error(stderr)
  return folder
}
