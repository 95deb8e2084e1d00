import { access, constants } from 'node:fs/promises'
import { secretFiles } from '../config/files.ts'
import { passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { endsStart, readOnlyLine, readSource, type SourceContent } from '../password/read-source.ts'
import { beyondMemory } from '../password/verifier.ts'
import type { Logger } from '../record/log.ts'
import { isWithheld } from '../system/setup-error.ts'
import { planMemory } from './client-memory.ts'

/**
 * Logs each password file that is missing or cannot be used: the running sidecar keeps the password that it has read, but the next start
 * fails. A file that Node's permission model withholds from this process is not judged.
 */
export async function warnOfNextStart(config: Config, log: Logger): Promise<void> {
  const passwords = passwordSources(config)
  const page = config.admin.passwordFile
  const others = secretFiles(config).filter(
    ({ key, file }) =>
      /password(?:_file|\.file)$/.test(key) && file !== page && !passwords.some((each) => each.key === key),
  )
  const { limit } = await planMemory(config)
  const own = page === undefined ? [] : [{ key: 'admin.password_file', file: page, isOneOfSeveral: false }]
  const sources = [
    ...passwords.map((source) => ({ ...source, isOneOfSeveral: passwords.length > 1 })),
    ...own,
  ]
  const reads = [
    ...sources.map(({ isOneOfSeveral, ...source }) => ({
      ...source,
      reasonOf: async () => whyNoStart(await readSource(source), isOneOfSeveral, limit),
    })),
    ...others.map((secret) => ({
      ...secret,
      async reasonOf() {
        const line = await readOnlyLine(secret.file)
        return typeof line === 'string' ? undefined : line.reason
      },
    })),
  ]
  const checks = reads.map(async ({ key, file, reasonOf }) => {
    const isHidden = await access(file, constants.R_OK).then(() => false, isWithheld)
    const reason = isHidden ? undefined : await reasonOf()
    if (reason === undefined) return
    log.warn({ key, file, reason }, 'the next start will fail, because it cannot use this file')
  })
  await Promise.all(checks)
}

function whyNoStart(content: SourceContent, isOneOfSeveral: boolean, limit: number): string | undefined {
  if ('reason' in content) return content.reason
  if (endsStart(content, isOneOfSeveral)) return content.absent
  return 'credential' in content ? beyondMemory(content.credential, limit) : undefined
}
