import { expect } from 'vitest'
import { accountAuth, SESSION_KINDS, startAccountDevice } from '../../sign-in/account-device.ts'
import { redfishAuth, startRedfishDevice } from '../../sign-in/session-devices.ts'
import { unusedPort } from '../../support/raw.ts'
import { type Case, casesOf } from './case.ts'

/** A device with sessions, and the configuration for it. */
export async function startRedfish(
  file: (name: string, text: string) => string,
  { password, auth = {} }: { readonly password?: string; readonly auth?: object } = {},
) {
  const redfish = await startRedfishDevice()
  const login = { ...redfishAuth, password: { file: file('device', password ?? redfish.password) }, ...auth }
  return { redfish, set: [`upstream.url=${redfish.device.url}`, `upstream.auth=${JSON.stringify(login)}`] }
}

export const LOGIN_CASES: readonly Case[] = [
  ...casesOf('signing in', {
    'nothing tried': {
      'no login': () => ({}),
      'a login with the password of a grant': () => ({
        set: ['password.device=true', 'upstream.auth={kind: basic, user: admin}'],
      }),
    },
    'look failed': {
      'H108 no file with the password for the device': () => ({
        set: ['upstream.auth={kind: basic, user: admin, password: {file: /nowhere}}'],
      }),
    },
    'no response': {
      async 'no device to sign in at'({ file }) {
        const auth = { ...redfishAuth, password: { file: file('device', 'secret') } }
        return {
          set: [
            `upstream.url=http://127.0.0.1:${await unusedPort()}`,
            `upstream.auth=${JSON.stringify(auth)}`,
          ],
        }
      },
    },
    refused: {
      async 'a wrong password'({ file }) {
        const { set } = await startRedfish(file, { password: 'wrong' })
        return { set }
      },
      async 'a login without the token that the configuration names'({ file }) {
        const session = { ...redfishAuth.session, token: { json: '/id' } }
        const { set } = await startRedfish(file, { auth: { session } })
        return {
          set,
        }
      },
    },
    'no logout': {
      async 'a session that cannot be ended'({ file }) {
        const { redfish, set } = await startRedfish(file)
        redfish.location = () => 'http://192.0.2.1/elsewhere'
        return {
          set,
        }
      },
    },
    accepted: {
      async 'a session by the cookies of a form'({ file }) {
        const account = await startAccountDevice()
        const auth = { ...accountAuth('form'), password: { file: file('device', account.password) } }
        return {
          set: [`upstream.url=${account.device.url}`, `upstream.auth=${JSON.stringify(auth)}`],
        }
      },
      async 'a session, and ends it'({ file }) {
        const { redfish, set } = await startRedfish(file)
        return {
          set,
          after: () => expect([redfish.sessions.size, redfish.logouts.length]).toEqual([0, 1]),
        }
      },
    },
  }),
  ...SESSION_KINDS.map(
    (kind): Case => ({
      part: 'signing in',
      row: 'another session',
      title: `H243 a device that changes its session with a response (${kind})`,
      async given({ file }) {
        const account = await startAccountDevice(kind === 'header' ? 'header' : 'cookie')
        if (kind === 'cookie') account.asks = '401'
        account.rotates = true
        const auth = { ...accountAuth(kind), password: { file: file('device', account.password) } }
        return {
          set: [`upstream.url=${account.device.url}`, `upstream.auth=${JSON.stringify(auth)}`],
        }
      },
    }),
  ),
]
