import { stat } from 'node:fs/promises'
import { secretFiles } from './files.ts'
import type { ConfigWarning, WarningRule } from './insecure-settings.ts'
import type { Config } from './schema.ts'

/** The rule of `exposedSecrets`. */
export const EXPOSURE_RULE: WarningRule = {
  about: 'a file with a secret that others can read, or that any user but its owner can write',
}

/**
 * Finds the files with secrets that users other than the owner and the group can read, or that any user but the owner can write. Read
 * permission for the group is normal (root:postern, 0640). The owner is not checked, because a user namespace shows a mapped owner.
 * A file whose mode cannot be read is skipped: the code that reads the file reports it.
 */
export async function exposedSecrets(config: Config): Promise<readonly ConfigWarning[]> {
  const looks = secretFiles(config).map(async (secret) => {
    const found = await stat(secret.file).catch(() => undefined)
    // A folder in place of the file is another fault: `chmod` would lock its owner out.
    const reason = found?.isFile() === true ? exposureOf(found.mode) : ''
    const meaning = 'accounts that do not need the file can read or replace it'
    const message = 'a file with a secret is open to other users'
    return reason === '' ? [] : [{ ...secret, reason, meaning, remedy: `chmod 0640 ${secret.file}`, message }]
  })
  return (await Promise.all(looks)).flat()
}

const EXPOSURES: readonly (readonly [bit: number, reason: string])[] = [
  [0o004, 'others can read it'],
  [0o002, 'others can write it'],
  [0o020, 'its group can write it'],
]

/** Why the mode of a file with a secret is too open; empty if it is not. */
export function exposureOf(mode: number): string {
  return EXPOSURES.filter(([bit]) => (mode & bit) !== 0)
    .map(([, reason]) => reason)
    .join(', ')
}
