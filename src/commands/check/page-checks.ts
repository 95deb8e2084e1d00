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
        meaning: 'serve does not start: it cannot guard the live page',
        remedy:
          'postern hash-password > FILE writes one; the user that runs Postern has to be able to read it',
        run: () => readPassword({ file: passwordFile }),
      },
    ]
  }
  if (address.kind !== 'tcp' || isLoopback(address.host)) return []
  const run = async (): Promise<string> =>
    'off: admin.address is not on loopback, and admin.password_file is not set'
  return [{ name: 'live page', meaning: 'nobody can open it', remedy: 'set admin.password_file', run }]
}
