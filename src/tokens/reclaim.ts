import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { checkedByDevice, passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { openPasswords } from '../password/sources.ts'
import { isBug, reasonOf, SetupError } from '../system/setup-error.ts'
import { BACK, findSetAside } from './set-aside.ts'
import type { StateDependencies } from './state.ts'

/** The log's line about a token file that cannot be read. */
export const SET_ASIDE = 'token file: unusable, set aside; starting empty'
const SET_ASIDE_FOUND =
  'token file: an earlier version has set one aside; to take its tokens back, do this and restart'
const BACK_UNUSABLE = 'token file: the one to take back is unusable, set aside; the tokens issued since stay'
const BACK_UNKNOWN =
  'token file: no tokens were taken back, because with password.device the password is unknown at the start'

/** Takes back the tokens of the file that the operator has named for it, and logs whether there is another one. */
export async function reclaimSetAside(config: Config, deps: StateDependencies, heir: string): Promise<void> {
  const { log, clock, hasName, hashMemory: memory } = deps
  const dir = config.stateDir
  try {
    if (existsSync(join(dir, BACK))) {
      // Once in a while, and no other start has a use for it.
      const { takeBack } = await import('./take-back.ts')
      const found = await takeBack({
        ...{ dir, heir, wall: clock.wall },
        fingerprint: (salt) => fingerprintOfFiles(config, { clock, hasName, memory }, salt),
        onSetAside: (fault, path) => log.error({ fault, path }, SET_ASIDE),
      })
      if (typeof found === 'object' && 'fault' in found) log.error(found, BACK_UNUSABLE)
      else if (typeof found === 'object') log.info(found, 'token file: tokens were taken back')
      if (found === 'unknown') log.warn({ path: join(dir, BACK) }, BACK_UNKNOWN)
    }
    const found = findSetAside(dir)
    if (found !== undefined) log.warn(found, SET_ASIDE_FOUND)
  } catch (error) {
    if (isBug(error) || error instanceof SetupError) throw error
    log.error({ reason: reasonOf(error) }, 'token file: tokens could not be taken back')
  }
}

/** The fingerprints of the passwords in files, and undefined where the device checks them. */
async function fingerprintOfFiles(
  config: Config,
  deps: Parameters<typeof openPasswords>[1],
  salt: Uint8Array,
): Promise<string | undefined> {
  if (checkedByDevice(config)) return undefined
  const passwords = await openPasswords(passwordSources(config), deps)
  try {
    return await passwords.fingerprint(salt)
  } finally {
    passwords.close()
  }
}
