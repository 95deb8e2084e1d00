import { access, constants } from 'node:fs/promises'
import { passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { secretFiles } from '../config/secrets.ts'
import { readOnlyLine, readSource } from '../password/source.ts'
import type { Logger } from '../record/log.ts'
import { isWithheld } from '../system/setup-error.ts'

/**
 * Logs each file with a secret that a start reads and a reload does not, if it is missing or cannot be used: the running sidecar goes on with
 * what it has, and the next start fails. A file that Node's permission model withholds from this process is not judged.
 */
export async function warnOfNextStart(config: Config, log: Logger): Promise<void> {
  const passwords = passwordSources(config)
  const page = config.admin.passwordFile
  const others = secretFiles(config).filter(
    ({ key, file }) =>
      /password(?:_file|\.file)$/.test(key) && file !== page && !passwords.some((each) => each.key === key),
  )
  const reads = [
    ...passwords.map((source) => ({ ...source, read: () => readSource(source) })),
    ...(page === undefined
      ? []
      : [{ key: 'admin.password_file', file: page, read: () => readSource({ file: page }) }]),
    ...others.map(({ key, file }) => ({ key, file, read: () => readOnlyLine(file) })),
  ]
  const looks = reads.map(async ({ key, file, read }) => {
    const isHidden = await access(file, constants.R_OK).then(() => false, isWithheld)
    if (isHidden) return
    const found = await read()
    if (typeof found === 'string' || !('reason' in found)) return
    const { reason } = found
    log.warn({ key, file, reason }, 'the next start will fail, because it cannot use this file')
  })
  await Promise.all(looks)
}
