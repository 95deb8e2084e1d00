import { isLocal } from '../../config/address.ts'
import { kindOfPassword, pagePasswordSources, passwordSources } from '../../config/password-fields.ts'
import type { Config } from '../../config/schema.ts'
import { KINDS } from '../../overview/alarm-kinds.ts'
import { openPasswords } from '../../password/sources.ts'
import { systemClock } from '../../system/clock.ts'
import { planAsRunning } from './memory.ts'
import { check } from './part.ts'

export const PASSWORD = check({
  subjects: ({ config }) => (kindOfPassword(config) === 'socket' ? [] : [config]),
  about: () => ({
    name: 'password source',
    key: 'password',
    meaning: 'serve does not start, because no client could get a token',
    remedy: 'correct the section password',
  }),
  untried: (config) =>
    kindOfPassword(config) === 'device' ? 'the device, which checks the password of every grant' : undefined,
  look: (config) => readPasswords(passwordSources(config), config),
  rows: {
    absent: ({ absent }) => {
      const { meaning, remedy } = KINDS.NoPassword
      return absent !== undefined && { failed: absent, meaning, remedy }
    },
    twins: ({ twins }) =>
      twins.length > 0 && {
        failed: `${twins.join(' and ')} have the same password`,
        meaning: 'it logs nobody in, because it does not tell which name is meant',
        remedy: 'change one of them',
      },
    readable: () => 'readable',
  },
})

/** The password of the live page. A page that only users of this machine can open needs none. */
export const LIVE_PAGE = check({
  subjects({ config }) {
    const { address, passwordFile } = config.admin
    if (address === 'off') return []
    return passwordFile === undefined && isLocal(address) ? [] : [config]
  },
  about: ({ admin }) => ({
    name: admin.passwordFile === undefined ? 'live page' : 'admin.password_file',
    key: 'admin.password_file',
    meaning: 'serve does not start: it cannot guard the live page',
    remedy: 'correct admin.password_file',
  }),
  untried({ admin: { address, passwordFile } }) {
    if (passwordFile !== undefined) return undefined
    return address !== 'off' && address.kind === 'fd'
      ? 'off unless the descriptor of admin.address is on loopback, because admin.password_file is not set'
      : 'off: admin.address is not on loopback, and admin.password_file is not set'
  },
  look: (config) => readPasswords(pagePasswordSources(config.admin), config),
  rows: { readable: () => 'readable' },
})

/**
 * Rejects if `serve` could not use a file. `absent`: why an account has no password (locked, expired, gone). `twins`: names with one
 * password.
 */
async function readPasswords(sources: Parameters<typeof openPasswords>[0], config: Config) {
  const { limit } = await planAsRunning(config)
  using passwords = await openPasswords(sources, { clock: systemClock, memory: { limit, hold() {} } })
  const twins = await passwords.twins()
  const { absent } = passwords.state()
  return { absent, twins }
}
