import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createLogin } from '../../src/admin/page-login.ts'
import { createPageSessions } from '../../src/admin/page-sessions.ts'
import { createLogOn } from '../../src/record/log.ts'
import { logIn, startWithLogin } from '../browser/browsing.ts'
import { send } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { pageCookie, pagePasswordFile } from '../support/passwords.ts'

it('H152 no session outlives a password that changes while the login ends', async () => {
  const clock = stillClock()
  const sessions = createPageSessions(clock, false, () => {})
  let generation = 0
  /** The password changes right after each look at its generation. */
  function change(): void {
    generation += 1
    sessions.endAll()
  }
  let verifications = 0
  const logIn = createLogin({
    clock,
    sessions,
    log: createLogOn('silent', { write() {} }),
    password: {
      isSet: true,
      async verify() {
        verifications += 1
        return { result: 'right', generation }
      },
      get generation() {
        queueMicrotask(change)
        return generation
      },
    },
  })
  const request = new IncomingMessage(new Socket())
  request.rawHeaders.push('Content-Type', 'application/x-www-form-urlencoded')
  request.push('password=p')
  request.push(null)
  request.complete = true
  const { status, fields } = await logIn(request)
  expect([status, verifications]).toEqual([303, 1])
  await Promise.resolve()
  expect(
    sessions.carriedBy(['Cookie', String(fields?.['Set-Cookie']).split(';', 1)[0] ?? '']),
  ).toBeUndefined()
})

it('H152 H188 a session of one login in a browser is none at the other', async () => {
  const sidecar = await startWithLogin({ config: { admin: { password_file: pagePasswordFile() } } })
  const [device, page] = [await logIn(sidecar), await pageCookie(sidecar.adminUrl)]
  const [idOfDevice, idOfPage] = [device, page].map((cookie) => cookie.split('=')[1])
  const nameOfPage = page.split('=')[0]
  const atPage = async (cookie: string): Promise<number> => {
    const { status } = await send({ transport: 'http1', url: sidecar.adminUrl, fields: ['Cookie', cookie] })
    return status
  }
  const atDevice = async (cookie: string): Promise<number> => {
    const fields = ['Sec-Fetch-Mode', 'cors', 'Sec-Fetch-Site', 'same-origin', 'Cookie', cookie]
    return (await sidecar.request({ fields })).status
  }
  expect([await atPage(page), await atDevice(device)]).toEqual([200, 200])
  expect(await atPage(`${page}; ${device}`)).toBe(200)
  expect(await atDevice(`${page}; ${device}`)).toBe(200)
  for (const cookie of [device, `${nameOfPage}=${idOfDevice}`, `__Host-postern=${idOfPage}`])
    expect(await atPage(cookie), cookie).toBe(401)
  for (const cookie of [page, `${nameOfPage}=${idOfDevice}`, `__Host-postern=${idOfPage}`])
    expect(await atDevice(cookie), cookie).toBe(401)
})
