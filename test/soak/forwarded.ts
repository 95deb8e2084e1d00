import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../support/client.ts'
import { judge } from './judge.ts'
import { bytesFor } from './random.ts'
import type { Visitor } from './visitor.ts'

export async function download(visitor: Visitor): Promise<void> {
  const { random } = visitor
  const [key, length] = [random.below(1000), random.pick([0, 1, 500, 20_000, 300_001, 1_000_000])]
  const response = await visitor.ask('download', { path: `/bytes/${key}/${length}`, token: 'login' })
  if (response === undefined) return
  judge(visitor, 'download', response, response.status === 200 && response.body.equals(bytesFor(key, length)))
}

export async function upload(visitor: Visitor): Promise<void> {
  const { random } = visitor
  const body = bytesFor(random.below(1000), random.pick([0, 1, 5000, 100_000, 700_000]))
  const pieces =
    random.below(2) === 0 ? body : [body.subarray(0, body.length >> 1), body.subarray(body.length >> 1)]
  const response = await visitor.ask('upload', {
    method: 'PUT',
    path: '/upload',
    token: 'login',
    body: pieces,
  })
  if (response === undefined) return
  const digest = createHash('sha256').update(body).digest('hex')
  judge(visitor, 'upload', response, response.status === 200 && response.text === `${body.length} ${digest}`)
}

export async function status(visitor: Visitor): Promise<void> {
  const code = visitor.random.pick([200, 204, 304, 404, 418, 500, 503])
  const response = await visitor.ask('status', { path: `/status/${code}`, token: 'login' })
  if (response === undefined) return
  const text = code === 204 || code === 304 ? '' : `status ${code}`
  judge(visitor, 'status', response, response.status === code && response.text === text)
}

export async function head(visitor: Visitor): Promise<void> {
  const response = await visitor.ask('head', { method: 'HEAD', path: '/bytes/1/1000', token: 'login' })
  if (response === undefined) return
  const right =
    response.status === 200 &&
    response.body.length === 0 &&
    response.values('content-length').join() === '1000'
  judge(visitor, 'head', response, right)
}

export async function slow(visitor: Visitor): Promise<void> {
  const response = await visitor.ask('slow', { path: `/slow/${visitor.random.below(400)}`, token: 'login' })
  if (response !== undefined)
    judge(visitor, 'slow', response, response.status === 200 && response.text === 'at last')
}

export async function events(visitor: Visitor): Promise<void> {
  const response = await visitor.ask('events', { path: '/events/5', token: 'login' })
  if (response === undefined) return
  const expected = [0, 1, 2, 3, 4].map((i) => `data: ${i}\n\n`).join('')
  judge(visitor, 'events', response, response.status === 200 && response.text === expected)
}

export async function cutByDevice(visitor: Visitor): Promise<void> {
  await visitor.ask('cut by the device', { path: '/cut/20000', token: 'login', breaks: true })
}

/** Leaves during a response or an upload. The end of the run checks that the device connections are closed. */
export async function abort(visitor: Visitor): Promise<void> {
  const { context, transport, address, tokens } = visitor
  if (tokens === undefined) return
  const connection = await connect({ transport, url: context.served.url, from: address })
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
  context.ledger.count('abort', 'left')
}

/** Sends several requests at once as HTTP/2 streams. */
export async function concurrentStreams(visitor: Visitor): Promise<void> {
  const { context, tokens, random, transport } = visitor
  if (tokens === undefined || transport !== 'h2') return
  const connection = await visitor.connection()
  const from = context.now()
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
    context.disturbanceLog.affected(kind, from, context.now()),
  )
  for (const [i, each] of settled.entries()) {
    const response = each.status === 'fulfilled' ? each.value : undefined
    const whole = response?.status === 200 && response.body.equals(bytesFor(keys[i] ?? 0, 30_000))
    if (!whole && (disturbed || (visitor.outdated && response?.status === 401)))
      context.ledger.count('concurrent streams', 'disturbed')
    else if (each.status === 'rejected') context.ledger.fail('concurrent streams', String(each.reason))
    else judge(visitor, 'concurrent streams', each.value, whole)
  }
}
