import { createHash } from 'node:crypto'
import { once } from 'node:events'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Figure } from '../figure.ts'
import { notInstalled } from '../growth/point.ts'
import { summarizeLatencies } from '../measure.ts'
import { say } from '../run-program.ts'
import type { Answer, Question } from './followers-worker.ts'
import { type IdleFollower, type MessagesPoint, messageFaults, messageTables } from './message-tables.ts'
import { type Client, RECONNECT, type Server, serverVersion, startServer } from './server.ts'
import { readCounters, usageOf } from './usage.ts'
import { PREFIX, WAYS, type Way } from './ways.ts'

/** Sidecars, and the tokens that each of them knows. */
const FOLLOWERS = [1, 3, 10, 100]
const TOKENS = 10_000

const REVOCATIONS = 100
const LOGINS = 100
const EXPIRIES = 100
const IDLE_SECONDS = 4.5

/** Lifetime of the tokens whose expiry is measured (ms). The server looks for expired keys ten times a second. */
const LIFETIME = 300

/** A follower that is told of what it missed while its connection was cut knows it after this time (ms). */
const LONGEST_CATCH_UP = 10_000

export const messages: Figure = {
  id: 'F4',
  title: 'How sidecars learn of a revocation',
  about: `Only the server and followers, without Postern: a stream (XADD in the revoking script, XREAD BLOCK), client-side caching (CLIENT TRACKING), its broadcast (BCAST PREFIX), and pub/sub. Each follower knows ${TOKENS} tokens. All followers share one thread, so that the last of 100 waits for the others.`,
  async measure(lab) {
    const version = await serverVersion()
    if (version === undefined) return notInstalled('redis-server')
    const points: MessagesPoint[] = []
    const counts = FOLLOWERS.filter((count) => lab.part === 1 || count < 10)
    const most = Math.max(...counts)
    for (const way of WAYS) {
      for (const followers of counts) {
        const server = await startServer(lab.proxyCore)
        try {
          points.push(await measureWay(server, way, followers, { part: lab.part, most }))
        } finally {
          await server.stop()
        }
        const { latency } = points.at(-1) ?? { latency: { p50: Number.NaN } }
        say(`  ${way.name}, ${followers} followers: p50 ${latency.p50.toFixed(2)} ms`)
      }
    }
    return {
      checks: [],
      charts: [],
      tables: messageTables(points),
      notes: [`redis-server ${version}`],
      faults: messageFaults(points),
    }
  },
}

/** Measures one way with this many followers; with `most` of them also what they cost while nothing happens. */
export async function measureWay(
  { port, client }: Server,
  way: Way,
  followers: number,
  { part, most }: { readonly part: number; readonly most: number },
): Promise<MessagesPoint> {
  const worker = new Worker(new URL('followers-worker.ts', import.meta.url), {
    workerData: { way: way.name, port },
  })
  const answered = async <A extends Answer>(): Promise<A> => {
    const [answer] = (await once(worker, 'message')) as [A] // the type that belongs to the question
    return answer
  }
  const ask = <A extends Answer = undefined>(question: Question): Promise<A> => {
    worker.postMessage(question)
    return answered<A>()
  }
  const login = await client.scriptLoad(LOGIN)
  const revoke = await client.scriptLoad(`${REVOKE}\n${way.tell}`)
  const issue = (i: number, lifetime: number): Promise<unknown> =>
    client.evalSha(login, { keys: [...grantKeys(i)], arguments: [String(lifetime)] })
  const end = (i: number): Promise<unknown> => client.evalSha(revoke, { keys: [...grantKeys(i)] })

  const grants = Array.from({ length: TOKENS / 2 }, (_, i) => i)
  await Promise.all(grants.map((i) => issue(i, 3_600_000)))
  await ask<number>({ kind: 'open', followers })
  const connected = await readCounters(client)
  await ask({ kind: 'learn', keys: grants.flatMap((i) => tokenKeys(i)) })
  const learned = await readCounters(client)

  const waits: number[] = []
  const revocations = Math.ceil(REVOCATIONS * part)
  const revocation = await usageOf(client, revocations, async () => {
    for (let i = 0; i < revocations; i += 1) {
      const told = answered<readonly bigint[]>()
      worker.postMessage({ kind: 'told', key: tokenKeys(i)[0] } satisfies Question)
      await end(i)
      const replied = process.hrtime.bigint()
      waits.push(...(await told).map((at) => Math.max(0, Number(at - replied) / 1e6)))
    }
  })

  await ask<number>({ kind: 'messages' })
  const logins = await usageOf(client, LOGINS, async () => {
    for (let i = 0; i < LOGINS; i += 1) await issue(TOKENS + i, 3_600_000)
  })
  await ask({ kind: 'ready' })
  const loginMessages = (await ask<number>({ kind: 'messages' })) / followers / (2 * LOGINS)
  const idle = followers < most ? undefined : await measureIdle(client, followers, part)

  const expired = await expire(client, { issue, ask })
  const expiryMessages = expired / followers / (2 * EXPIRIES)

  await cut(client)
  await end(revocations)
  await pause(2 * RECONNECT)
  await ask({ kind: 'ready' })
  const heard = (): Promise<number> => ask<number>({ kind: 'heard', key: tokenKeys(revocations)[0] })
  const deadline = performance.now() + (way.keeps ? LONGEST_CATCH_UP : 0)
  while ((await heard()) < followers && performance.now() < deadline) await pause(RECONNECT / 5)
  const heardAfterCut = await heard()
  await ask({ kind: 'close' })
  await worker.terminate()
  return {
    way: way.name,
    followers,
    latency: summarizeLatencies(waits),
    perToken: (learned.memory - connected.memory) / followers / TOKENS,
    revocation,
    login: logins,
    loginMessages,
    expiryMessages,
    heardAfterCut,
    askedAgain: heardAfterCut === followers ? 0 : TOKENS,
    idle,
  }
}

interface Expiry {
  issue(i: number, lifetime: number): Promise<unknown>
  ask<A extends Answer = undefined>(question: Question): Promise<A>
}

/**
 * Lets `EXPIRIES` grants expire that all followers know, and returns the number of messages. On a busy machine grants may expire
 * before the followers know them: then it does so again with grants that live longer.
 */
async function expire(client: Client, { issue, ask }: Expiry): Promise<number> {
  for (let attempt = 0; ; attempt += 1) {
    const lifetime = LIFETIME * 4 ** attempt
    const grants = Array.from({ length: EXPIRIES }, (_, i) => (2 + attempt) * TOKENS + i)
    const keys = grants.flatMap((i) => tokenKeys(i))
    const begin = performance.now()
    await Promise.all(grants.map((i) => issue(i, lifetime)))
    await ask({ kind: 'learn', keys })
    await ask<number>({ kind: 'messages' })
    const inTime = performance.now() - begin < lifetime
    await pause(1.5 * lifetime)
    // The server removes expired keys over time; a read removes them at once.
    await client.mGet(keys)
    await ask({ kind: 'ready' })
    const messages = await ask<number>({ kind: 'messages' })
    if (inTime) return messages
  }
}

/** Waits, and divides what the server used by the followers. What it uses without any is part of it. */
async function measureIdle(client: Client, followers: number, part: number): Promise<IdleFollower> {
  const seconds = Math.max(1, IDLE_SECONDS * part)
  const second = await usageOf(client, followers * seconds, () => pause(seconds * 1000))
  return { second, memory: (await readCounters(client)).connections / followers }
}

/** Cuts the connections of all followers: each is back after `RECONNECT`. */
async function cut(client: Client): Promise<void> {
  for (const type of ['normal', 'pubsub']) {
    await client.sendCommand(['CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes'])
  }
}

const LOGIN = `redis.call('SET', KEYS[1], string.rep('a', 150), 'PX', ARGV[1])
redis.call('SET', KEYS[2], string.rep('r', 150), 'PX', ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[1], KEYS[2])`

const REVOKE = `redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], KEYS[2])`

type Pair = readonly [access: string, refresh: string]

function tokenKeys(grant: number): Pair {
  const key = (kind: string): string =>
    `${PREFIX}t:${createHash('sha256').update(`${kind}${grant}`).digest('base64url')}`
  return [key('a'), key('r')]
}

function grantKeys(grant: number): readonly string[] {
  return [...tokenKeys(grant), `${PREFIX}grants`]
}
