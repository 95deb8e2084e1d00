// The default import, as the source has it: derivations are held here.
import crypto from 'node:crypto'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { FROM_PAGE, logIn, startWithLogin, submitLogin } from '../browser/browsing.ts'
import { replaceFile } from '../process/serve.ts'
import { send } from '../support/client.ts'
import { startDevice } from '../support/device.ts'
import { BrokenTransfer, type Response } from '../support/message.ts'
import { makeNames } from '../support/passwords.ts'
import { FORM_TYPE, HASHED_PASSWORD, PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

/** Holds the next derivation of a key until `release`. `begun` resolves when it begins. */
function holdDerivation() {
  const { argon2 } = crypto
  const begun = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  vi.spyOn(crypto, 'argon2').mockImplementationOnce((...call: Parameters<typeof argon2>) => {
    begun.resolve()
    void held.promise.then(() => argon2(...call))
  })
  return { begun: begun.promise, release: () => held.resolve() }
}

it('H188 H210 a login of a browser that is at the device while a reload switches the login off leaves no session', async () => {
  const right = `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}`
  const asked = Promise.withResolvers<() => void>()
  let held = false
  const device = await startDevice((request, response) => {
    const isSignedIn = request.headers.authorization === right
    if (!isSignedIn) response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="device"' })
    if (!isSignedIn || held) return response.end()
    held = true
    asked.resolve(() => response.end())
  })
  const sidecar = await startWithLogin({
    device,
    config: {
      browser: { login: 'on' },
      password: { file: undefined, device: true },
      upstream: { auth: { kind: 'basic', user: 'admin', check_path: '/check' } },
    },
  })
  const login = submitLogin(sidecar)
  const answer = await asked.promise
  await sidecar.reload({ browser: { login: 'off' } })
  const refused = await login
  expect([refused.status, refused.values('set-cookie')]).toEqual([401, []])
  answer()
  await sidecar.reload({ browser: { login: 'off' } })
  expect(await sidecar.metric('postern_tokens')).toBe(0)
  await sidecar.reload({})
  const fields = [...FROM_PAGE, 'Cookie', await logIn(sidecar)]
  expect((await sidecar.request({ fields })).status).toBe(200)
})

/** A login with the password of `monitor`, and a reload with these names for the files of `admin` and `monitor` while it is verified. */
async function logInDuring(reloaded: readonly string[]) {
  const names = makeNames({ admin: undefined, monitor: undefined })
  names.set('monitor', HASHED_PASSWORD)
  const sidecar = await startSidecar({ config: names.config })
  const { begun, release } = holdDerivation()
  const login = sidecar.postToken({ grant_type: 'password', password: PASSWORD })
  await begun
  const passwords = reloaded.map((name, at) => ({ ...names.config.passwords[at], name }))
  await sidecar.reload({ passwords })
  release()
  return { sidecar, response: await login }
}

it('C8 H194 a login whose password is verified while a reload removes its name gets no token', async () => {
  const { sidecar, response } = await logInDuring(['admin'])
  expect(response.json()).toMatchObject({ error: 'invalid_grant' })
  expect(await sidecar.metric('postern_tokens_issued_total')).toBe(0)
})

it('C5 H194 a login whose password is verified while a reload renames it gets a token of the new name', async () => {
  const { sidecar, response } = await logInDuring(['admin', 'viewer'])
  const token = String(response.json().access_token)
  expect((await sidecar.request({ token })).status).toBe(200)
  const lines = sidecar.logLines().map((line) => JSON.parse(line))
  expect(lines.filter(({ msg, name }) => msg === 'request' && name === 'viewer')).toHaveLength(2)
})

/** A sidecar whose live page has a password, and the keys that say so. */
async function startPage() {
  const page = await startSidecar()
  const file = join(page.directory, 'page')
  replaceFile(file, `${HASHED_PASSWORD}\n`)
  const admin = { password_file: file }
  await page.reload({ admin })
  return { page, admin }
}

const logInToPage = ({ adminUrl: url }: TestSidecar, from = '127.0.0.1'): Promise<Response> =>
  send({
    transport: 'http1',
    url,
    from,
    method: 'POST',
    path: '/page/login',
    fields: ['Content-Type', FORM_TYPE, 'Origin', url],
    body: new URLSearchParams({ password: PASSWORD }).toString(),
  })

it('H152 a login to the live page that is verified while a reload removes its password leaves no session', async () => {
  const { page } = await startPage()
  const { begun, release } = holdDerivation()
  const login = logInToPage(page)
  await begun
  await page.reload({})
  release()
  const refused = await login
  expect([refused.status, refused.values('set-cookie')]).toEqual([401, []])
})

it('H152 a login to the live page that is verified while a reload removes its address leaves no session', async () => {
  const { page, admin } = await startPage()
  const { begun, release } = holdDerivation()
  const login = logInToPage(page, '127.0.0.2').catch((error: unknown) => error)
  await begun
  await page.reload({ admin: { ...admin, allow: ['127.0.0.1'] } })
  expect(await login).toBeInstanceOf(BrokenTransfer)
  release()
  expect((await logInToPage(page)).status).toBe(303)
  const signedIn = page.logLines().filter((line) => line.includes('live page: signed in'))
  expect(signedIn.map((line) => JSON.parse(line).client)).toEqual(['127.0.0.1'])
})
