import { insecureSettings } from '../config/insecure-settings.ts'
import type { Config } from '../config/schema.ts'
import { type ConfigWarning, exposedSecrets, secretFiles } from '../config/secrets.ts'
import { readSource } from '../password/source.ts'
import type { Logger } from '../record/log.ts'
import { shellWord } from '../system/named-file.ts'

/** What works and is not safe: settings, passwords in plain text, and files with a secret that are open to other users. */
export async function warningsOf(config: Config): Promise<readonly ConfigWarning[]> {
  return [...insecureSettings(config), ...(await plainPasswords(config)), ...(await exposedSecrets(config))]
}

/** Files that could hold a hash. One with which Postern also signs in to the device cannot. */
async function plainPasswords(config: Config): Promise<readonly ConfigWarning[]> {
  const files = secretFiles(config)
  const looks = files.map(async ({ key, file }) => {
    if (!['password.file', 'admin.password_file'].includes(key)) return []
    if (files.some((other) => other.file === file && other.key.startsWith('upstream.'))) return []
    const found = await readSource({ file })
    if (!('credential' in found) || found.credential.kind !== 'plain') return []
    const [path, next] = [shellWord(file), shellWord(`${file}.new`)]
    return {
      key,
      file,
      reason: 'it holds the password in plain text',
      meaning: 'a reader of the file, or of a backup of it, has the password',
      remedy: `cp -p ${path} ${next} && postern hash-password > ${next} && mv ${next} ${path}; then every ${key === 'password.file' ? 'client' : 'viewer'} has to log in again`,
    }
  })
  return (await Promise.all(looks)).flat()
}

/**
 * Logs a line for each warning, and again only if its reason changes. One look at the files follows the other: two at once would both
 * log what is new. Never rejects, because a warning must not prevent a start or a reload.
 */
export function createConfigWarnings(
  log: Logger,
  onBug: (error: unknown) => void,
): (config: Config) => Promise<void> {
  let before: readonly ConfigWarning[] = []
  let turn = Promise.resolve()

  async function look(config: Config): Promise<void> {
    const found = await warningsOf(config)
    for (const { meaning, message = `insecure: ${meaning}`, ...line } of found) {
      const isKnown = before.some(
        ({ key, file, reason }) => key === line.key && file === line.file && reason === line.reason,
      )
      if (!isKnown) log.warn(line, message)
    }
    before = found
  }

  return (config) => {
    turn = turn.then(() => look(config)).catch(onBug)
    return turn
  }
}
