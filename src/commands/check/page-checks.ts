import type { Config } from '../../config/schema.ts'
import { isLoopback } from '../../http/ip.ts'
import { readPassword } from './file-checks.ts'
import type { Check } from './finding.ts'

/** The password of the live page, or that the page is off. None for a page that users of this machine alone can open. */
export function pageChecks({ admin }: Config): readonly Check[] {
  const { address, passwordFile } = admin
  if (address === 'off') return []
  if (passwordFile !== undefined) {
    return [
      {
        name: 'admin.password_file',
        key: 'admin.password_file',
        meaning: 'serve does not start: it cannot guard the live page',
        remedy: 'correct admin.password_file',
        run: () => readPassword({ file: passwordFile }, 'admin.password_file'),
      },
    ]
  }
  if (address.kind !== 'tcp' || isLoopback(address.host)) return []
  const run = async (): Promise<string> =>
    'off: admin.address is not on loopback, and admin.password_file is not set'
  const remedy = 'set admin.password_file'
  return [{ name: 'live page', key: 'admin.address', meaning: 'nobody can open it', remedy, run }]
}
