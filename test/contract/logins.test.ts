import { expect, it } from 'vitest'
import { hashPassword } from '../../src/password/key-derivation.ts'
import { expectError } from '../support/expectations.ts'
import { shareOfThread } from '../support/lived-time.ts'
import { encodeForm, FORM_TYPE, PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** A number of logins at once, each on a connection of its own. */
async function logInAtOnce(sidecar: TestSidecar, count: number, passwordOf: (i: number) => string) {
  const connections = await Promise.all(Array.from({ length: count }, () => sidecar.connect()))
  const fields = ['Content-Type', FORM_TYPE]
  return connections.map((connection, i) => {
    const body = encodeForm({ grant_type: 'password', password: passwordOf(i) })
    return connection.send({ method: 'POST', path: '/oauth/token', body, fields })
  })
}

it('H32 two hundred concurrent logins queue for hashing, and less than half of the work is done on the event loop', async () => {
  const sidecar = await startSidecar({ password: await hashPassword(PASSWORD) })
  const share = shareOfThread()
  const logins = await logInAtOnce(sidecar, 200, (i) => `wrong ${i}`)
  // Another client is served meanwhile.
  expect((await sidecar.request()).status).toBe(401)
  const responses = await Promise.all(logins)
  const ofThread = share()
  const refused = responses.filter(({ status }) => status !== 400)
  expect(responses.length - refused.length).toBeGreaterThan(2)
  expect(refused.length).toBeGreaterThan(50)
  for (const response of refused) expectError(response, 500, 'overloaded')
  expect(ofThread).toBeLessThan(0.5)
})

it('H32 two hundred concurrent logins with the right password all succeed: those that wait share one hash', async () => {
  const sidecar = await startSidecar({ password: await hashPassword(PASSWORD) })
  const responses = await Promise.all(await logInAtOnce(sidecar, 200, () => PASSWORD))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  // Each has a grant of its own.
  expect(new Set(responses.map((response) => response.json().access_token)).size).toBe(200)
})
