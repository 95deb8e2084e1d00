import { EXPOSURE_RULE, exposedSecrets } from '../config/exposed-secrets.ts'
import {
  type ConfigWarning,
  insecureSettings,
  SETTING_RULES,
  type WarningRule,
} from '../config/insecure-settings.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../record/log.ts'
import { insecurePasswords, PASSWORD_RULES } from './insecure-passwords.ts'

/** All that `warningsOf` can find: the source of the list in docs/hardening.md. */
export const WARNING_RULES: readonly WarningRule[] = [...SETTING_RULES, ...PASSWORD_RULES, EXPOSURE_RULE]

/** What works and is not safe: settings, weak passwords and hashes, and files with a secret that are open to other users. */
export async function warningsOf(config: Config): Promise<readonly ConfigWarning[]> {
  return [
    ...insecureSettings(config),
    ...(await insecurePasswords(config)),
    ...(await exposedSecrets(config)),
  ]
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
