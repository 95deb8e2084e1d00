import { expect, it } from 'vitest'
import { startWithLogin, submitLogin } from '../browser/browsing.ts'
import { startHook } from '../password/hook.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { accessLines } from '../support/records.ts'
import {
  encodeForm,
  FORM_TYPE,
  PASSWORD as SIDECAR_PASSWORD,
  startSidecar,
  type TestSidecar,
  type YamlPart,
} from '../support/sidecar.ts'
import { transports } from '../support/transports.ts'

const PASSWORD = 'right one'
const FROM = '127.0.0.2'
const DENIED = { listen: { allow: ['127.0.0.1'] } }
const BY_PROXY = { listen: { trusted_proxies: ['127.0.0.1'] } }
const LOGIN = { grant_type: 'password', password: PASSWORD }
const ENDED = 'requests in flight ended: the new configuration does not admit them'

/** A program that checks passwords, and holds its answers until `release`. `asked` resolves at the next question for a password. */
async function holdingHook() {
  const hook = await startHook({ password: PASSWORD })
  const asked = Promise.withResolvers<void>()
  const held: (() => void)[] = []
  hook.answer = (line, peer) => {
    if (line.includes('fingerprint')) return peer.end('right one\n')
    held.push(() => void peer.end('right one\n'))
    return asked.resolve()
  }
  return {
    config: { password: { file: undefined, socket: hook.socket } },
    asked: asked.promise,
    lines: hook.lines,
    release(): void {
      hook.answer = undefined
      for (const answer of held) answer()
    },
  }
}

/** The login was refused before its password was checked, is counted and logged so, and no token exists. */
async function expectNoToken(sidecar: TestSidecar): Promise<void> {
  await expect.poll(() => accessLines(sidecar).at(-1)).toMatchObject({ refusal: 'address-denied' })
  expect(await sidecar.metric('postern_requests_ended_total', { reason: 'address_denied' })).toBe(1)
  expect(sidecar.logLines().filter((line) => line.includes(ENDED))).toHaveLength(1)
  expect(await sidecar.metric('postern_tokens_issued_total')).toBe(0)
  expect(await sidecar.metric('postern_tokens')).toBe(0)
}

it.each(transports)(
  'H209 a login that waits for the hook is refused at once by a reload that removes its address, and no other is: %s',
  async (transport) => {
    const { config, asked, release } = await holdingHook()
    const sidecar = await startSidecar({ transport, config })
    const login = sidecar.postToken(LOGIN, { from: FROM })
    await asked
    const other = sidecar.postToken({ ...LOGIN, username: 'other' })
    await sidecar.reload(DENIED)
    expectError(await login, 400, 'invalid_request')
    await expect.poll(() => accessLines(sidecar).at(-1)).toMatchObject({ refusal: 'address-denied' })
    release()
    expect((await other).status).toBe(200)
    expect(await sidecar.metric('postern_tokens_issued_total')).toBe(1)
    expect(sidecar.overview.condition()).toMatchObject({ tokens: { access: 1, refresh: 1 } })
  },
)

it.each<readonly [string, YamlPart, readonly string[], string | undefined]>([
  ['its own', {}, [], FROM],
  [
    'that of a trusted proxy',
    BY_PROXY,
    ['X-Forwarded-For', '192.0.2.66', 'X-Forwarded-Proto', 'https'],
    undefined,
  ],
])(
  'H209 a login of a browser that waits for the hook gets no session when a reload removes its address, %s',
  async (_whose, part, fields, from) => {
    const { config, asked, release } = await holdingHook()
    const sidecar = await startWithLogin({ config: { ...part, ...config } })
    const navigation = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'same-origin', ...fields]
    const login = submitLogin(sidecar, { password: PASSWORD, fields: navigation, ...(from && { from }) })
    await asked
    await sidecar.reload({ listen: { ...(part.listen as YamlPart), ...DENIED.listen } })
    const response = await login
    expect([response.status, response.values('set-cookie')]).toEqual([400, []])
    release()
    await expectNoToken(sidecar)
  },
)

it('H209 a login whose password the device checks gets no token when a reload removes its address meanwhile', async () => {
  const right = `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}`
  const asked = Promise.withResolvers<() => void>()
  const device = await startDevice(({ headers }, response) => {
    const isSignedIn = headers.authorization === right
    if (!isSignedIn) response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="device"' })
    if (isSignedIn) asked.resolve(() => response.end())
    else response.end()
  })
  const sidecar = await startSidecar({
    device,
    config: {
      password: { file: undefined, device: true },
      upstream: { auth: { kind: 'basic', user: 'admin', check_path: '/check' } },
    },
  })
  const login = sidecar.postToken(LOGIN, { from: FROM })
  const answer = await asked.promise
  await sidecar.reload(DENIED)
  expectError(await login, 400, 'invalid_request')
  answer()
  await expectNoToken(sidecar)
})

it('H209 an attempt that waits because of wrong passwords is refused by a reload that removes its address, and never checked', async () => {
  const sidecar = await startSidecar({ config: { limits: { wrong_passwords: 'slow' } } })
  for (let count = 0; count < 4; count++) await sidecar.postToken({ ...LOGIN, password: 'x' }, { from: FROM })
  const login = sidecar.postToken({ grant_type: 'password', password: SIDECAR_PASSWORD }, { from: FROM })
  await expect.poll(() => sidecar.metric('postern_logins_slowed_total')).toBe(1)
  await sidecar.reload(DENIED)
  expectError(await login, 400, 'invalid_request')
  await sidecar.clock.advance(60_000)
  await expectNoToken(sidecar)
})

/** Sends a form whose body follows the response that comes after `meanwhile`. Resolves when the sidecar has got the body, too. */
async function sendDuring(
  sidecar: TestSidecar,
  path: string,
  form: Readonly<Record<string, string>>,
  meanwhile: () => Promise<unknown>,
) {
  const connection = await sidecar.connect({ from: FROM })
  const body = encodeForm(form)
  const fields = ['Content-Type', FORM_TYPE, 'Content-Length', String(body.length), 'Expect', '100-continue']
  const exchange = connection.start({ method: 'POST', path, fields, open: true })
  await exchange.waitForInformational(100)
  await meanwhile()
  const response = await exchange.response
  exchange.end(body)
  if (sidecar.transport === 'h2') await connection.send({})
  else await connection.closed
  connection.close()
  return response
}

it.each(transports)(
  'H209 a form that arrives while a reload removes its address spends and revokes no token: %s',
  async (transport) => {
    const tokens = { rotate_refresh: true }
    const oauth = { revocation_path: '/oauth/revoke' }
    const sidecar = await startSidecar({ transport, config: { tokens, oauth } })
    const { refresh_token } = await sidecar.grant()
    const forms = [
      ['/oauth/token', { grant_type: 'refresh_token', refresh_token }],
      ['/oauth/token', { grant_type: 'password', password: SIDECAR_PASSWORD }],
      ['/oauth/revoke', { token: refresh_token }],
    ] as const
    for (const [path, form] of forms) {
      const response = await sendDuring(sidecar, path, form, () => sidecar.reload(DENIED))
      expectError(response, 400, 'invalid_request')
      await sidecar.reload({})
    }
    expect(await sidecar.metric('postern_requests_ended_total', { reason: 'address_denied' })).toBe(3)
    expect(await sidecar.metric('postern_tokens_issued_total')).toBe(1)
    expect(await sidecar.metric('postern_tokens_revoked_total')).toBe(0)
    await sidecar.refresh(refresh_token)
  },
)

it.each(transports)(
  'H209 a revocation that arrives while a reload takes its path away is refused as if it arrived now: %s',
  async (transport) => {
    const sidecar = await startSidecar({ transport, config: { oauth: { revocation_path: '/oauth/revoke' } } })
    const { refresh_token, access_token } = await sidecar.grant()
    const reload = () => sidecar.reload({ oauth: { revocation_path: 'off' } })
    const response = await sendDuring(sidecar, '/oauth/revoke', { token: refresh_token }, reload)
    expect(response.status).toBe(401)
    expect((await sidecar.request({ token: access_token })).status).toBe(200)
  },
)
