import { describe, expect, it } from 'vitest'
import { afterTurn } from '../../src/system/clock.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { Conversation } from '../../src/verify/conversation.ts'
import { tokenRequest } from '../../src/verify/question.ts'
import { verify } from '../../src/verify/run.ts'
import type { Verdict } from '../../src/verify/verdict.ts'
import { brokenIn, idsOf, movedTime, runOptions, runVerify } from './a-run.ts'
import { type DocumentedServerOptions, startDocumentedServer } from './documented-server.ts'
import { BROKEN_OFF, json, UNPROCESSED } from './exchange.ts'
import type { Layer } from './faults/fault.ts'

function withLayer(exchange: Layer, changes: DocumentedServerOptions = {}): DocumentedServerOptions {
  return { ...changes, faults: [{ does: 'is unfriendly', breaks: {}, exchange }] }
}

const revocationPath = '/oauth/revoke'

describe.concurrent('A server that repeats everything', () => {
  const ENCODINGS: Readonly<Record<string, (text: string) => string>> = {
    plain: (text) => text,
    url: encodeURIComponent,
    json: (text) => JSON.stringify(text).slice(1, -1),
    form: (text) => new URLSearchParams([['a', text]]).toString().slice(2),
    html: (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;'),
  }
  const PASSWORDS = ['pass"word-1', '100% & <true> + "ünïcode" 漢', 'p%22q+r s&t;u']

  it.each(PASSWORDS)('does not bring %j or a token into a report', async (password) => {
    const seen = new Set<string>([password])
    /** All that a request says, in each encoding, in the body, in a field, as error and as members of a wrong type. */
    const echo: Layer = async (request, next, { tokens }) => {
      const form = new URLSearchParams((await request.body()) ?? '')
      const fresh = tokens.login()
      for (const token of Object.values(fresh)) seen.add(token)
      const values = [...form.values(), ...(request.fields.get('authorization') ?? []), fresh.accessToken]
      const all = Object.values(ENCODINGS)
        .flatMap((encode) => values.map(encode))
        .join(' ; ')
      const reply = await next(request)
      const field = Buffer.from(all).toString('latin1')
      const fields = { ...reply.fields, 'WWW-Authenticate': field, 'Cache-Control': field }
      const debug = { access_token: fresh.accessToken, refresh_token: fresh.refreshToken }
      const begun = reply.status === 200 && request.path === '/oauth/token'
      if (begun) {
        const issued = JSON.parse(reply.body)
        for (const name of ['access_token', 'refresh_token']) seen.add(issued[name])
        return {
          ...reply,
          fields,
          body: JSON.stringify({ ...issued, token_type: [all, debug], expires_in: all }),
        }
      }
      return json(reply.status === 400 ? 418 : reply.status, { error: all, debug }, fields)
    }
    const server = await startDocumentedServer(withLayer(echo, { password }))
    const told: unknown[] = []
    const reporter = {
      announce() {},
      progress: (text: string) => told.push(text),
      decided: (verdict: Verdict) => told.push(verdict),
      finished() {},
    }
    const options = runOptions(server.url, password, { quick: true, revocationPath })
    const report = await verify(options, reporter, movedTime())
    expect(idsOf(report, 'broken')).toEqual(expect.arrayContaining(['C4', 'C5', 'C9', 'C11']))
    const text = [report, ...told].flatMap(textsIn).join('\n')
    for (const secret of seen)
      for (const encode of Object.values(ENCODINGS)) expect(text).not.toContain(encode(secret))
  })

  it('does not bring the password into the error that ends the run', async () => {
    const server = await startDocumentedServer(
      withLayer(async () =>
        json(401, { error: 'invalid_grant', detail: 'not pass%22word-1 or pass\\"word-1' }),
      ),
    )
    const run = runVerify(runOptions(server.url, 'pass"word-1', { quick: true }))
    const error = await run.then(
      () => expect.unreachable(),
      (reason: unknown) => reason as SetupError,
    )
    expect(error).toBeInstanceOf(SetupError)
    expect(error.exitCode).toBe(1)
    expect(error.message).toMatch(
      /does not accept the password: 401 invalid_grant; correct the password file/,
    )
    expect(error.stack).not.toMatch(/word-1/)
  })
})

it('H126 the right password goes into no URL and no field', async () => {
  const password = 'correct "horse" battery'
  const seen: string[] = []
  const server = await startDocumentedServer(
    withLayer(
      (request, next) => {
        seen.push(`${request.path}${request.query}`, ...[...request.fields.values()].flat())
        return next(request)
      },
      { password },
    ),
  )
  await runVerify(runOptions(server.url, password, { quick: true }))
  const encoded = [password, encodeURIComponent(password), Buffer.from(password).toString('base64')]
  encoded.push(new URLSearchParams([['password', password]]).toString().slice('password='.length))
  expect(seen.some((text) => text.includes('password=wrong-'))).toBe(true)
  for (const text of encoded) expect(seen.filter((each) => each.includes(text))).toEqual([])
})

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

describe.concurrent('C9 looks for the right password', () => {
  const password = 'correct "horse" battery'
  const c9 = async (exchange: Layer, secret = password): Promise<Verdict> => {
    const server = await startDocumentedServer(withLayer(exchange, { password: secret }))
    const { report } = await runVerify(
      runOptions(server.url, secret, { quick: true, only: ['C9', 'C1', 'C15'] }),
    )
    return report.promises.find(({ id }) => id === 'C9') ?? expect.unreachable()
  }
  const showing =
    (status: number, shown: string): Layer =>
    async (request, next) => {
      const reply = await next(request)
      return reply.status === status ? json(status, { error: 'x', shown }, reply.fields) : reply
    }

  it.each([password, encodeURIComponent(password)])('in a refusal that shows %s', async (shown) => {
    const { result, departures } = await c9(showing(400, shown))
    expect([result, departures.map(({ came }) => came)]).toEqual(['broken', ['400 that shows the password']])
  })

  it('in a 429', async () => {
    expect((await c9(showing(429, password))).departures[0]?.came).toBe('429 that shows the password')
  })

  it('in the refusal of a password that was sent to another path', async () => {
    const { departures } = await c9(async (request, next) =>
      request.path === '/oauth/token/' ? json(404, { path: await request.body() }) : next(request),
    )
    expect(departures[0]?.came).toBe('404 that shows the password')
  })

  it.each([
    ['secret1', 'the password is too short to look for'],
    ['password', 'the password is a word, which may be in any text'],
  ])('but not for %s, and says so', async (secret, reason) => {
    const { result, notes } = await c9(showing(400, `the ${secret} is wrong`), secret)
    expect([result, notes]).toEqual(['kept', [reason]])
  })
})

describe.concurrent('A server that does not respond any more', () => {
  it('ends the run, which says since when; what was decided stays', async () => {
    let requests = 0
    const server = await startDocumentedServer(
      withLayer((request, next) => {
        requests += 1
        if (requests === 20) afterTurn(server.stop)
        return next(request)
      }),
    )
    const decided: string[] = []
    const reporter = {
      announce() {},
      progress() {},
      decided: ({ id }: Verdict) => decided.push(id),
      finished() {},
    }
    const options = runOptions(server.url, server.password, { revocationPath })
    const error = await verify(options, reporter, movedTime()).then(
      () => expect.unreachable(),
      (reason) => reason,
    )
    expect(error).toMatchObject({ exitCode: 1 })
    expect(error.message).toMatch(
      /^http:\S+ has not responded since 20\S+Z: no response: connect ECONNREFUSED/,
    )
    expect(decided).toContain('C4')
  })

  it('does not end it if the server closes connections on some requests only', async () => {
    const server = await startDocumentedServer(
      withLayer((request, next) =>
        request.path.includes('%') || request.method === 'HEAD' ? BROKEN_OFF : next(request),
      ),
    )
    const { report } = await runVerify(runOptions(server.url, server.password, { quick: true }))
    expect(idsOf(report, 'broken')).toContain('C10')
    expect(idsOf(report, 'kept')).toContain('C4')
  })
})

it('a used-up window is waited for once: then what another client takes is not testable', async () => {
  const time = movedTime()
  const busy: Layer = async (request, next) =>
    request.path === '/oauth/token' && (await request.body())?.includes('wrong')
      ? json(429, {}, { 'Retry-After': '9' })
      : next(request)
  const { url, password } = await startDocumentedServer(withLayer(busy, { now: time.wall }))
  const { report, progress } = await runVerify(runOptions(url, password, { only: ['C5'] }), time)
  expect(report.promises).toMatchObject([
    {
      id: 'C5',
      result: 'not testable',
      notes: [expect.stringMatching(/wrong password: 429, also in a new/)],
    },
  ])
  expect(progress).toEqual(['/oauth/token: waits for a new window (this one is used up): 9 s'])
})

it('a 429 to another spelling of /oauth/token is waited for as its Retry-After says', async () => {
  const time = movedTime()
  let end = Number.POSITIVE_INFINITY
  const once: Layer = async (request, next) => {
    const reply = await next(request)
    if (request.path !== '/oauth/token/' || time.wall() >= end) return reply
    end = time.wall() + 2_000
    return json(429, {}, { ...reply.fields, 'Retry-After': '2' })
  }
  const { url, password } = await startDocumentedServer(withLayer(once, { now: time.wall }))
  const conversation = new Conversation(
    runOptions(url, password),
    time,
    new AbortController().signal,
    () => {},
  )
  const login = tokenRequest({}, 'without a form', '/oauth/token/')
  expect((await conversation.ask({ ...login, oddity: 'respelled' })).status).not.toBe(429)
  conversation[Symbol.dispose]()
})

describe.concurrent('Revocation', () => {
  async function tokensOf(
    options: DocumentedServerOptions,
    path: string | 'off' = revocationPath,
  ): Promise<string> {
    const time = movedTime()
    const server = await startDocumentedServer({ ...options, now: time.wall })
    const { report } = await runVerify(
      runOptions(server.url, server.password, {
        only: ['C6'],
        quick: true,
        revocationPath: path === 'off' ? undefined : path,
      }),
      time,
    )
    return report.tokens
  }

  it('says what the server answered, not that the tokens are revoked', async () => {
    expect(await tokensOf({ revocationPath })).toBe('the server answered 200 to each revocation')
  })

  it('says what is left, without a time that only Postern knows', async () => {
    expect(await tokensOf({})).toBe(
      '/oauth/revoke: 401 (application/json without a known error, 25 bytes): the tokens of the run are left, and expire by themselves',
    )
    expect(await tokensOf({}, 'off')).toBe(
      'not revoked: the tokens of the run are left, and expire by themselves',
    )
  })

  it('takes a 429 for no refusal, and quotes no secret', async () => {
    const busy: Layer = async (request, next) =>
      request.path === revocationPath ? json(429, {}, { 'Retry-After': '1' }) : next(request)
    expect(await tokensOf(withLayer(busy, { revocationPath }))).toBe(
      '/oauth/revoke: 429 Too Many Requests: revoke the tokens yourself, or wait until they expire',
    )
  })

  it('asks once for each login, though refresh tokens were replaced', async () => {
    const revoked: string[] = []
    const log: Layer = async (request, next) => {
      if (request.path === revocationPath) revoked.push((await request.body()) ?? '')
      return next(request)
    }
    const server = await startDocumentedServer(
      withLayer(log, { revocationPath, rotate: true, grace: 10_000 }),
    )
    await runVerify(runOptions(server.url, server.password, { only: ['C6'], quick: true, revocationPath }))
    expect(revoked).toHaveLength(3)
  })

  it('revokes by the access token where there is no other', async () => {
    const revoked: string[] = []
    const bare: Layer = async (request, next) => {
      if (request.path === revocationPath) revoked.push((await request.body()) ?? '')
      const reply = await next(request)
      if (request.path !== '/oauth/token' || reply.status !== 200) return reply
      const { refresh_token: _, ...body } = JSON.parse(reply.body)
      return { ...reply, body: JSON.stringify(body) }
    }
    expect(await tokensOf(withLayer(bare, { revocationPath }))).toBe(
      'the server answered 200 to each revocation',
    )
    expect(revoked).not.toEqual([])
  })

  it('after Ctrl-C does not wait, and says what became of the tokens', async () => {
    const stop = new AbortController()
    const busy: Layer = async (request, next) => {
      if (request.path === revocationPath) return json(429, {}, { 'Retry-After': '60' })
      if (request.path === '/') stop.abort(new Error('stopped'))
      return next(request)
    }
    const server = await startDocumentedServer(withLayer(busy, { revocationPath }))
    const progress: string[] = []
    const reporter = {
      announce() {},
      progress: (text: string) => progress.push(text),
      decided() {},
      finished() {},
    }
    const options = runOptions(server.url, server.password, { path: '/', revocationPath })
    await expect(verify(options, reporter, movedTime(), stop.signal)).rejects.toThrow('stopped')
    expect(progress.at(-1)).toBe(
      'tokens: /oauth/revoke: 429 Too Many Requests: revoke the tokens yourself, or wait until they expire',
    )
  })
})

it('a server that does not process each stream over HTTP/2 leaves the window over HTTP/2 untested', async () => {
  const time = movedTime()
  let requests = 0
  const refusing: Layer = async (request, next) => {
    if (request.version === '2') requests += 1
    return request.version === '2' && requests % 9 === 4 ? UNPROCESSED : next(request)
  }
  const server = await startDocumentedServer(withLayer(refusing, { tls: true, now: time.wall }))
  const { report } = await runVerify(runOptions(server.url, server.password, { only: ['C14', 'C15'] }), time)
  expect(report.promises).toMatchObject(['C14', 'C15'].map((id) => ({ id, result: 'kept', departures: [] })))
  expect(report.promises[0]?.notes).toContain('not over HTTP/2: the server did not process each request')
})

it('a server that stalls until a window is over leaves what the window shows not testable', async () => {
  const time = movedTime()
  const stalling: Layer = (request, next) => {
    if (request.path === '/') time.advance(3_000)
    return next(request)
  }
  const server = await startDocumentedServer(withLayer(stalling, { now: time.wall }))
  const { report } = await runVerify(
    runOptions(server.url, server.password, { path: '/', only: ['C13', 'C14', 'H69', 'C15'] }),
    time,
  )
  expect(idsOf(report, 'broken')).toEqual([])
  expect(idsOf(report, 'not testable')).toContain('C14')
})

it('a window on the clock that ends while a burst is under way leaves C14 not testable', async () => {
  const time = movedTime()
  time.jumpWall(60_000 - (time.wall() % 60_000))
  let isLate = false
  const stalling: Layer = (request, next, { tokens }) => {
    // The burst has a valid token.
    const token = /^Bearer (.*)/.exec(request.fields.get('authorization')?.[0] ?? '')?.[1] ?? ''
    if (request.version === '2' && !isLate && tokens.admits(token)) {
      isLate = true
      time.jumpWall(59_900)
    }
    return next(request)
  }
  const good = { tls: true, onTheClock: true, now: time.wall } as const
  const server = await startDocumentedServer(withLayer(stalling, good))
  const { report } = await runVerify(
    runOptions(server.url, server.password, { path: '/', only: ['C14'] }),
    time,
  )
  expect(isLate).toBe(true)
  expect(report.promises).toMatchObject([
    { id: 'C14', result: 'not testable', notes: ['over HTTP/2: a window ended before it was used up'] },
  ])
})

it('other clients that use the windows meanwhile leave the counts not testable, and break nothing', async () => {
  const time = movedTime()
  const beside: Layer = async (request, next, { windows, endpointOf, keyOf }) => {
    const reply = await next(request)
    const isTheirTurn = reply.fields['X-RateLimit-Remaining'] === '20'
    if (isTheirTurn) await windows[endpointOf(request)].count(keyOf(request))
    return reply
  }
  const server = await startDocumentedServer(withLayer(beside, { now: time.wall }))
  const { report } = await runVerify(runOptions(server.url, server.password, { path: '/' }), time)
  expect(brokenIn(report)).toEqual({})
  expect(idsOf(report, 'not testable')).toEqual(['C8', 'C13', 'C14', 'H125'])
})
