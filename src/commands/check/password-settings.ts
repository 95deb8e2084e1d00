import { insecurePasswords } from '../../compose/insecure-passwords.ts'
import { checkedByDevice, passwordSources } from '../../config/password-fields.ts'
import type { Config } from '../../config/schema.ts'
import { readSource } from '../../password/read-source.ts'
import type { Setting } from './condition.ts'

/** What each password file holds. A file that cannot be read counts as lacking. */
export async function passwordSettings(config: Config): Promise<readonly Setting[]> {
  const device = { key: 'password.device', value: 'the device checks it', holds: true }
  const warnings = await insecurePasswords(config)
  const { passwordFile } = config.admin
  const page = passwordFile === undefined ? [] : [{ key: 'admin.password_file', file: passwordFile }]
  const stored = await Promise.all(
    [...passwordSources(config), ...page].map(async (source): Promise<Setting> => {
      const { key, file } = source
      const found = await readSource(source)
      if ('reason' in found || 'absent' in found) return { key, value: 'not readable', holds: false }
      const faults = warnings.filter((each) => each.key === key && each.file === file)
      if (faults.length > 0)
        return { key, value: faults.map(({ reason }) => reason).join('; '), holds: false }
      // Plain text causes no warning if Postern signs in to the device with it.
      return found.credential.kind === 'plain'
        ? { key, value: 'it holds the password in plain text, to sign in to the device', holds: false }
        : { key, value: 'a hash', holds: true }
    }),
  )
  return checkedByDevice(config) ? [device, ...stored] : stored
}
