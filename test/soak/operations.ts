import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { connect } from '../support/client.ts'
import { BrokenTransfer, type Response } from '../support/message.ts'
import { encodeForm } from '../support/sidecar.ts'
import { LIMITS } from './house.ts'
import { bytesFor } from './random.ts'
import type { Visitor } from './visitor.ts'

/** Something a visitor does. It says itself what came of it. */
type Operation = (visitor: Visitor) => Promise<void>

function judge(visitor: Visitor, name: string, answer: Response, right: boolean): void {
  const { ledger } = visitor.house
  if (right) ledger.count(name, String(answer.status))
  else
    ledger.fail(
      name,
      `${visitor.transport} ${answer.status} ${JSON.stringify(answer.fields)} ${answer.text.slice(0, 200)}`,
    )
}

/** C18: the shape of every answer of the sidecar's own. */
function isRefusal(answer: Response, status: number, code: string): boolean {
  return (
    answer.status === status &&
    new RegExp(`^\\{"error":"${code}","error_description":"[A-Z][ -~]*\\."\\}$`).test(answer.text) &&
    answer.values('content-type').join() === 'application/json;charset=UTF-8'
  )
}

const asForm = (
  form: Readonly<Record<string, string>>,
): { method: string; fields: string[]; body: string } => ({
  method: 'POST',
  fields: ['Content-Type', 'application/x-www-form-urlencoded'],
  body: encodeForm(form),
})

async function download(visitor: Visitor): Promise<void> {
  const { random } = visitor
  const [key, length] = [random.below(1000), random.pick([0, 1, 500, 20_000, 300_001, 1_000_000])]
  const answer = await visitor.ask('download', { path: `/bytes/${key}/${length}`, token: 'login' })
  if (answer === undefined) return
  judge(visitor, 'download', answer, answer.status === 200 && answer.body.equals(bytesFor(key, length)))
}

async function upload(visitor: Visitor): Promise<void> {
  const { random } = visitor
  const body = bytesFor(random.below(1000), random.pick([0, 1, 5000, 100_000, 700_000]))
  const pieces =
    random.below(2) === 0 ? body : [body.subarray(0, body.length >> 1), body.subarray(body.length >> 1)]
  const answer = await visitor.ask('upload', { method: 'PUT', path: '/upload', token: 'login', body: pieces })
  if (answer === undefined) return
  const digest = createHash('sha256').update(body).digest('hex')
  judge(visitor, 'upload', answer, answer.status === 200 && answer.text === `${body.length} ${digest}`)
}

async function status(visitor: Visitor): Promise<void> {
  const code = visitor.random.pick([200, 204, 304, 404, 418, 500, 503])
  const answer = await visitor.ask('status', { path: `/status/${code}`, token: 'login' })
  if (answer === undefined) return
  const text = code === 204 || code === 304 ? '' : `status ${code}`
  judge(visitor, 'status', answer, answer.status === code && answer.text === text)
}

async function head(visitor: Visitor): Promise<void> {
  const answer = await visitor.ask('head', { method: 'HEAD', path: '/bytes/1/1000', token: 'login' })
  if (answer === undefined) return
  const right =
    answer.status === 200 && answer.body.length === 0 && answer.values('content-length').join() === '1000'
  judge(visitor, 'head', answer, right)
}

async function slow(visitor: Visitor): Promise<void> {
  const answer = await visitor.ask('slow', { path: `/slow/${visitor.random.below(400)}`, token: 'login' })
  if (answer !== undefined) judge(visitor, 'slow', answer, answer.status === 200 && answer.text === 'at last')
}

async function events(visitor: Visitor): Promise<void> {
  const answer = await visitor.ask('events', { path: '/events/5', token: 'login' })
  if (answer === undefined) return
  const expected = [0, 1, 2, 3, 4].map((i) => `data: ${i}\n\n`).join('')
  judge(visitor, 'events', answer, answer.status === 200 && answer.text === expected)
}

async function cutByDevice(visitor: Visitor): Promise<void> {
  await visitor.ask('cut by the device', { path: '/cut/20000', token: 'login', breaks: true })
}

async function refresh(visitor: Visitor): Promise<void> {
  const { tokens } = visitor
  if (tokens === undefined) return
  const from = visitor.house.now()
  const form = asForm({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
  const answer = await visitor.ask('refresh', { path: '/oauth/token', ...form })
  if (answer === undefined) return
  const revoked = visitor.outdated || visitor.house.weather.was('password', from, visitor.house.now())
  if (revoked && isRefusal(answer, 400, 'invalid_grant')) {
    visitor.house.ledger.count('refresh', 'revoked')
    visitor.logOut()
    return
  }
  const given = answer.status === 200 ? answer.json() : {}
  const right = given.refresh_token === tokens.refresh_token && given.access_token !== tokens.access_token
  judge(visitor, 'refresh', answer, right)
}

async function wrongPassword(visitor: Visitor): Promise<void> {
  const form = asForm({ grant_type: 'password', password: 'certainly not' })
  const answer = await visitor.ask('wrong password', { path: '/oauth/token', ...form })
  if (answer !== undefined) judge(visitor, 'wrong password', answer, isRefusal(answer, 400, 'invalid_grant'))
}

async function formerPassword(visitor: Visitor): Promise<void> {
  const { password, weather, now } = visitor.house
  const from = now()
  const { changes, before } = password
  if (changes === 0) return
  const form = asForm({ grant_type: 'password', password: before })
  const answer = await visitor.ask('former password', { path: '/oauth/token', ...form })
  if (answer === undefined || weather.was('password', from, now())) return
  judge(visitor, 'former password', answer, isRefusal(answer, 400, 'invalid_grant'))
}

async function badForm(visitor: Visitor): Promise<void> {
  const body = visitor.random.pick([
    '',
    'grant_type',
    'grant_type=password&password=%zz',
    'a=b&a=b&grant_type=password',
  ])
  const answer = await visitor.ask('bad form', { path: '/oauth/token', ...asForm({}), body })
  if (answer !== undefined) judge(visitor, 'bad form', answer, isRefusal(answer, 400, 'invalid_request'))
}

async function noToken(visitor: Visitor): Promise<void> {
  const token = visitor.random.pick([undefined, 'wrong', 'x'.repeat(43)])
  const answer = await visitor.ask('no token', { path: '/bytes/1/10', token })
  if (answer !== undefined) judge(visitor, 'no token', answer, isRefusal(answer, 401, 'invalid_token'))
}

async function logOut(visitor: Visitor): Promise<void> {
  const { tokens } = visitor
  if (tokens === undefined) return
  const form = asForm({ token: tokens.access_token })
  const answer = await visitor.ask('log out', { path: '/oauth/revoke', ...form })
  if (answer === undefined) return
  judge(visitor, 'log out', answer, answer.status === 200)
  visitor.logOut()
  const after = await visitor.ask('after log out', { path: '/bytes/1/10', token: tokens.access_token })
  if (after !== undefined) judge(visitor, 'after log out', after, isRefusal(after, 401, 'invalid_token'))
}

/** Leaves in the middle, of an answer or of an upload: the device must be rid of it, which the end of the run tells. */
async function abort(visitor: Visitor): Promise<void> {
  const { house, transport, address, tokens } = visitor
  if (tokens === undefined) return
  const connection = await connect({ transport, url: house.served.url, from: address })
  const fields = ['Authorization', `Bearer ${tokens.access_token}`]
  const path = visitor.random.pick(['/hold', '/bytes/3/1000000', '/slow/1000'])
  const exchange = connection.start(
    path === '/hold' ? { path, method: 'POST', fields, open: true } : { path, fields },
  )
  exchange.response.catch(() => {})
  if (path === '/hold') exchange.write('the beginning of something')
  await delay(visitor.random.below(60))
  if (visitor.random.below(2) === 0) exchange.abort()
  connection.close()
  house.ledger.count('abort', 'left')
}

/** Several streams at once: only HTTP/2 answers them in any order. */
async function atOnce(visitor: Visitor): Promise<void> {
  const { house, tokens, random, transport } = visitor
  if (tokens === undefined || transport !== 'h2') return
  const connection = await visitor.connection()
  const from = house.now()
  const keys = Array.from({ length: 6 }, () => random.below(1000))
  const settled = await Promise.allSettled(
    keys.map((key) =>
      connection.send({
        path: `/bytes/${key}/30000`,
        fields: ['Authorization', `Bearer ${tokens.access_token}`],
      }),
    ),
  )
  const disturbed = (['device', 'password'] as const).some((kind) =>
    house.weather.was(kind, from, house.now()),
  )
  for (const [i, each] of settled.entries()) {
    const answer = each.status === 'fulfilled' ? each.value : undefined
    const whole = answer?.status === 200 && answer.body.equals(bytesFor(keys[i] ?? 0, 30_000))
    if (whole) house.ledger.count('at once', '200')
    else if (disturbed || (visitor.outdated && answer?.status === 401))
      house.ledger.count('at once', 'disturbed')
    else house.ledger.fail('at once', each.status === 'rejected' ? String(each.reason) : `${answer?.status}`)
  }
}

async function tunnel(visitor: Visitor): Promise<void> {
  const { house, address, tokens, random } = visitor
  if (tokens === undefined) return
  const from = house.now()
  const socket = new WebSocket(`${house.served.url.replace('http', 'ws')}/tunnel`, {
    rejectUnauthorized: false,
    localAddress: address,
    headers: { Authorization: `Bearer ${tokens.access_token}` },
    handshakeTimeout: 15_000,
  })
  socket.on('error', () => {})
  // From the first moment on: it may close between two messages.
  const closed = gone(socket)
  closed.catch(() => {})
  try {
    await within(15_000, once(socket, 'open'))
    for (let i = 0; i < 5; i++) {
      const sent = bytesFor(random.below(1000), random.pick([0, 10, 5000, 200_000]))
      socket.send(sent)
      const [echoed] = await within(15_000, Promise.race([once(socket, 'message'), closed]))
      if (!Buffer.isBuffer(echoed) || !echoed.equals(sent)) throw new Error('another message came back')
      await delay(random.below(200))
    }
    house.ledger.count('tunnel', 'echoed')
  } catch (error) {
    const disturbed = (['device', 'password'] as const).some((kind) =>
      house.weather.was(kind, from, house.now()),
    )
    if (disturbed || visitor.outdated) house.ledger.count('tunnel', 'disturbed')
    else house.ledger.fail('tunnel', String(error))
  } finally {
    if (random.below(2) === 0) socket.close()
    else socket.terminate()
    if (socket.readyState !== WebSocket.CLOSED)
      await within(15_000, once(socket, 'close')).catch(() => socket.terminate())
  }
}

async function gone(socket: WebSocket): Promise<never> {
  const [code] = await once(socket, 'close')
  throw new Error(`the tunnel closed with ${code}`)
}

async function within<T>(ms: number, waiting: Promise<T>): Promise<T> {
  const timer = new AbortController()
  const late = delay(ms, undefined, { signal: timer.signal }).then(() =>
    Promise.reject(new Error(`nothing for ${ms} ms`)),
  )
  late.catch(() => {})
  try {
    return await Promise.race([waiting, late])
  } finally {
    timer.abort()
  }
}

/** C14, C15: past the limit all is refused, and exactly past it. */
export async function greed(visitor: Visitor): Promise<void> {
  const { house } = visitor
  const connection = await connect({
    transport: visitor.transport,
    url: house.served.url,
    from: neighbour(visitor),
  })
  let passed = 0
  let refused = 0
  let wrong = 0
  try {
    for (let i = 0; i < LIMITS.oauth + 5; i++) {
      const answer = await connection.send({ path: '/oauth/token', ...asForm({ grant_type: 'none' }) })
      if (answer.status === 429 && Number(answer.header('retry-after')) >= 1) refused += 1
      else if (isRefusal(answer, 400, 'unsupported_grant_type')) passed += 1
      else wrong += 1
    }
  } catch (error) {
    if (!(error instanceof BrokenTransfer)) throw error
    wrong += 1
  } finally {
    connection.close()
  }
  if (passed === LIMITS.oauth && refused === 5 && wrong === 0) house.ledger.count('greed', 'limited')
  else house.ledger.fail('greed', `${passed} passed, ${refused} refused, ${wrong} otherwise`)
}

/** An address that nobody else uses. */
function neighbour({ address }: Visitor): string {
  return address.replace(/^127\.(\d+)/, (_, second) => `127.${Number(second) + 100}`)
}

/** What visitors do, and how often beside each other. */
const OPERATIONS: readonly (readonly [number, Operation])[] = [
  [8, download],
  [5, upload],
  [4, status],
  [2, head],
  [2, slow],
  [2, events],
  [1, cutByDevice],
  [3, refresh],
  [1, wrongPassword],
  [1, formerPassword],
  [1, badForm],
  [2, noToken],
  [1, logOut],
  [3, abort],
  [3, atOnce],
  [3, tunnel],
]

/** Does one thing, by chance; logs in first where that has to be. */
export async function doSomething(visitor: Visitor): Promise<void> {
  if (visitor.tokens === undefined) {
    await visitor.logIn()
    if (visitor.tokens === undefined) return
  }
  let at = visitor.random.below(OPERATIONS.reduce((sum, [weight]) => sum + weight, 0))
  for (const [weight, operation] of OPERATIONS) {
    if (at < weight) return operation(visitor)
    at -= weight
  }
}
