import type { Config } from '../config/schema.ts'
import { type ExposedSecret, exposedSecrets } from '../config/secrets.ts'
import type { Logger } from '../record/log.ts'

/** Logs a warning for each file with a secret whose mode is too open, and again only if the reason changes. */
export function createExposureWarning(log: Logger): (config: Config) => Promise<void> {
  let before: readonly ExposedSecret[] = []
  return async (config) => {
    const found = await exposedSecrets(config)
    for (const { key, file, reason, remedy } of found) {
      const isKnown = before.some((known) => known.file === file && known.reason === reason)
      if (!isKnown) log.warn({ key, file, reason, remedy }, 'a file with a secret is open to other users')
    }
    before = found
  }
}
