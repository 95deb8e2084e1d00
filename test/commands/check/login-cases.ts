import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { launch } from '../../devices/launch.ts'
import { accountAuth, startAccountDevice } from '../../sign-in/account-device.ts'
import { startDigestDevice } from '../../sign-in/devices.ts'
import { redfishAuth, startRedfishDevice } from '../../sign-in/session-devices.ts'
import { temporaryDirectory } from '../../support/certificate.ts'
import { readBody, startDevice } from '../../support/device.ts'
import { unusedPort } from '../../support/raw.ts'
import { nextRequest, startScripted } from '../../support/scripted.ts'
import { needs } from '../../support/tools.ts'
import { type Case, casesOf } from './case.ts'

const SESSIONS = '/redfish/v1/SessionService/Sessions'

/** A device with sessions, and the configuration for it. */
async function startRedfish(
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
      'no login': () => ({ says: 'off' }),
      'a login with the password of a grant': () => ({
        set: ['password.device=true', 'upstream.auth={kind: basic, user: admin}'],
        says: 'with the password of the last password grant, once there is one',
      }),
    },
    'look failed': {
      'H108 no file with the password for the device': () => ({
        set: ['upstream.auth={kind: basic, user: admin, password: {file: /nowhere}}'],
        says: /^upstream\.auth\.password\.file: .*\/nowhere: there is no such file$/,
        exitCode: 2,
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
          says: 'the device did not respond (connection_refused)',
          remedy: 'nothing listens there: switch the device on, or correct host and port in upstream.url',
          result: 'failed',
        }
      },
    },
    refused: {
      async 'a wrong password'({ file }) {
        const { set } = await startRedfish(file, { password: 'wrong' })
        return { set, says: 'the device refuses these credentials', result: 'failed' }
      },
      async 'a login without the token that the configuration names'({ file }) {
        const session = { ...redfishAuth.session, token: { json: '/id' } }
        const { set } = await startRedfish(file, { auth: { session } })
        return {
          set,
          says: `the login at ${SESSIONS} answered 201 without a token (json /id): a wrong password, or key`,
          result: 'failed',
        }
      },
    },
    'no logout': {
      async 'a session that cannot be ended'({ file }) {
        const { redfish, set } = await startRedfish(file)
        redfish.location = () => 'http://192.0.2.1/elsewhere'
        return {
          set,
          says: /; Location of the login names http:\/\/192\.0\.2\.1, not the device: the session stays until the device ends it$/,
          remedy: 'correct upstream.auth.session.logout',
          result: 'warning',
        }
      },
    },
    accepted: {
      async 'a session, and ends it'({ file }) {
        const { redfish, set } = await startRedfish(file)
        return {
          set,
          says: `${SESSIONS} gave a token (header X-Auth-Token)`,
          after: () => expect([redfish.sessions.size, redfish.logouts.length]).toEqual([0, 1]),
        }
      },
    },
  }),
  ...(['form', 'cookie', 'header'] as const).flatMap((kind) =>
    [{}, { on_change: 'follow' }].map((settings): Case => {
      const follows = 'on_change' in settings
      return {
        part: 'signing in',
        row: follows ? 'accepted' : 'another session',
        title: `H243 a device that changes its session with a response${follows ? ', which Postern follows' : ', and the key that allows it'} (${kind})`,
        async given({ file }) {
          const account = await startAccountDevice(kind === 'header' ? 'header' : 'cookie')
          if (kind === 'cookie') account.asks = '401'
          account.rotates = true
          const auth = {
            ...accountAuth(kind, settings),
            password: { file: file('device', account.password) },
          }
          const section = kind === 'form' ? 'form' : 'session'
          return {
            set: [`upstream.url=${account.device.url}`, `upstream.auth=${JSON.stringify(auth)}`],
            ...(follows
              ? { says: /^\S.*$/, result: 'ok' }
              : {
                  says: /; its response to GET \/ sets another session$/,
                  remedy: new RegExp(
                    `set upstream\\.auth\\.${section}\\.on_change: follow, if no client can`,
                  ),
                  result: 'warning',
                }),
          }
        },
      }
    }),
  ),
]

type Posted = { readonly chunked: boolean; readonly body: string }
type Answer = readonly [status: number, body: string] | undefined

/** A device that answers a POST by `answer`; undefined: it closes the connection. */
function startPosted(answer: (posted: Posted) => Answer) {
  return startDevice(async (request, response) => {
    if (request.method !== 'POST') return response.end('page')
    const chunked = request.headers['transfer-encoding'] === 'chunked'
    const [status, body] = answer({ chunked, body: String(await readBody(request)) }) ?? []
    if (status === undefined) response.destroy()
    else response.writeHead(status).end(body)
  })
}

const posts = (device: Awaited<ReturnType<typeof startPosted>>) =>
  device.requests.filter(({ method }) => method === 'POST')

const UP = { uploads: '/up' }
const ANY_LENGTH = '; a body of any length passes (max_body: off)'

/** Devices that take chunks otherwise than a length: what they answer to chunks. */
const LOSING: readonly (readonly [shown: string, answer: Answer])[] = [
  ['411', [411, 'no']],
  ['501', [501, 'no']],
  ['400', [400, 'no']],
  ['no answer', undefined],
  ['200 with another body', [200, '0']],
]

const startLosing = (answer: Answer) =>
  startPosted(({ chunked, body }) => (chunked ? answer : [200, String(body.length)]))

export const UPLOAD_CASES: readonly Case[] = [
  ...casesOf('uploads', {
    'nothing tried': {
      async 'an upload over HTTP/1.0, and sends nothing'() {
        const device = await startPosted(() => [200, ''])
        return {
          set: [`upstream.url=${device.url}`, 'upstream.version=1.0'],
          asked: UP,
          says: 'nothing was sent, because HTTP/1.0 has no chunks',
          after: () => expect(posts(device)).toEqual([]),
        }
      },
    },
    'look failed': {
      async 'a device that does not answer a POST with a length, and sends it none in chunks'() {
        const device = await startPosted(() => undefined)
        return {
          set: [`upstream.url=${device.url}`],
          asked: UP,
          says: 'no answer to a POST with a length (connection_terminated)',
          result: 'failed',
          after: () => expect(posts(device)).toHaveLength(1),
        }
      },
    },
    'the same': {
      async 'a device that reads chunks, by two POSTs with one body'() {
        const device = await startPosted(({ body }) => [201, body])
        return {
          set: [`upstream.url=${device.url}`, 'upstream.headers.X-Key=k'],
          asked: { uploads: '/up?x=1' },
          says: `a POST with a length got 201, one in chunks 201 with the same body${ANY_LENGTH}`,
          after() {
            const [whole, chunked, ...others] = posts(device)
            expect(others).toEqual([])
            const shown = ['content-length', 'transfer-encoding', 'x-key']
            expect([whole?.target, ...shown.map((name) => whole?.header(name))]).toEqual([
              ...['/up?x=1', '4096', undefined, 'k'],
            ])
            expect([chunked?.target, ...shown.map((name) => chunked?.header(name))]).toEqual([
              ...['/up?x=1', undefined, 'chunked', 'k'],
            ])
            expect(whole?.body).toHaveLength(4096)
            expect(chunked?.body).toEqual(whole?.body)
          },
        }
      },
      async 'the same with a body in several chunks'() {
        const bodies: string[] = []
        const device = await startScripted(async (peer) => {
          const head = await nextRequest(peer)
          if (/chunked/i.test(head)) bodies.push(await peer.waitFor('\r\n0\r\n\r\n'))
          peer.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
        })
        return {
          set: [`upstream.url=${device.url}`],
          asked: UP,
          says: /200 with the same body/,
          after: () => expect(bodies.map((body) => body.match(/^400\r$/gm)?.length)).toEqual([4]),
        }
      },
      async 'how a device takes an upload behind a login, and ends the session'({ file }) {
        const { redfish, set } = await startRedfish(file)
        return {
          set,
          asked: UP,
          says: / got 200, one in chunks 200/,
          after: () => expect(redfish.sessions.size).toBe(0),
        }
      },
      async 'an upload to a device that takes each Digest nonce once, and repeats it'({ file }) {
        const locked = await startDigestDevice()
        locked.oneTime = true
        const auth = {
          kind: 'digest',
          user: locked.user,
          password: { file: file('device', locked.password) },
        }
        return {
          set: [`upstream.url=${locked.url}`, `upstream.auth=${JSON.stringify(auth)}`],
          asked: UP,
          says: / got 200, one in chunks 200/,
        }
      },
    },
    'chunks are lost': {
      async 'the service of the path, and writes the line below its key'() {
        const main = await startPosted(() => [200, ''])
        const camera = await startPosted(({ chunked }) => [chunked ? 411 : 200, ''])
        return {
          set: [`upstream.url=${main.url}`, `upstream.routes./cam/.url=${camera.url}`],
          asked: { uploads: '/cam/up' },
          says: /411/,
          remedy: /write upstream\.routes\.\/cam\/: \{buffer_uploads: 16MiB\}/,
          after: () => expect([posts(main), posts(camera).length]).toEqual([[], 2]),
        }
      },
      async 'that a program of BusyBox httpd gets no body in chunks'() {
        needs('busybox')
        const root = temporaryDirectory()
        mkdirSync(join(root, 'cgi-bin'))
        const program =
          '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n"\nhead -c "$((CONTENT_LENGTH))" | wc -c\n'
        writeFileSync(join(root, 'cgi-bin/length'), program, { mode: 0o755 })
        const url = await launch('busybox', (port) => ['httpd', '-f', '-p', `127.0.0.1:${port}`, '-h', root])
        return {
          set: [`upstream.url=${url}`],
          asked: { uploads: '/cgi-bin/length' },
          says: `a POST with a length got 200, one in chunks 200 with another body${ANY_LENGTH}`,
          result: 'warning',
        }
      },
    },
    'not signed in': {
      async 'no login, and posts nothing'({ file }) {
        const { redfish, set } = await startRedfish(file, { password: 'wrong' })
        return {
          set,
          asked: UP,
          says: 'nothing was sent, because Postern is not signed in',
          remedy: 'correct upstream.auth',
          result: 'warning',
          after: () => expect(redfish.device.requests.map(({ target }) => target)).not.toContain('/up'),
        }
      },
    },
  }),
  ...LOSING.flatMap(([shown, answer]): Case[] => {
    const found = `a POST with a length got 200, one in chunks ${shown}`
    const size =
      'for uploads above 1 MiB, write upstream: {buffer_uploads: 16MiB}, or the size of the longest'
    const given = async (...set: readonly string[]) => ({
      set: [`upstream.url=${(await startLosing(answer)).url}`, ...set],
      asked: UP,
    })
    return [
      {
        part: 'uploads',
        row: 'chunks are lost',
        title: `a device that answers ${shown} to chunks, with the line to write`,
        given: async () => ({
          ...(await given()),
          says: `${found}${ANY_LENGTH}`,
          means: 'of an upload in chunks the device may take only a part, or nothing',
          remedy: size,
          result: 'warning',
        }),
      },
      {
        part: 'uploads',
        row: 'chunks are lost',
        title: `the same (${shown}) with buffer_uploads: off`,
        given: async () => ({
          ...(await given('upstream.buffer_uploads=off')),
          says: `${found}${ANY_LENGTH}`,
          remedy: `write upstream: {buffer_uploads: auto}; ${size}`,
          writes: { bufferUploads: 'auto' },
          result: 'warning',
        }),
      },
      {
        part: 'uploads',
        row: 'no chunks',
        title: `the same (${shown}) where Postern sends no chunks`,
        given: async () => ({
          ...(await given('upstream.buffer_uploads=2MiB')),
          says: `${found}; Postern sends it none in chunks${ANY_LENGTH}`,
        }),
      },
    ]
  }),
  ...(
    [
      ['404 to both', () => [404, 'no'], '404, one in chunks 404'],
      ['an error to a length alone', ({ chunked }) => [chunked ? 200 : 500, ''], '500, one in chunks 200'],
    ] satisfies [string, (posted: Posted) => Answer, string][]
  ).map(
    ([what, answer, shown]): Case => ({
      part: 'uploads',
      row: 'error of the path',
      title: `nothing in ${what}`,
      given: async () => ({
        set: [`upstream.url=${(await startPosted(answer)).url}`],
        asked: UP,
        says: `a POST with a length got ${shown}${ANY_LENGTH}`,
        means: 'it is unknown whether the device reads an upload in chunks',
        remedy: 'name a path of the device that takes a POST',
        result: 'warning',
      }),
    }),
  ),
  ...(
    [
      ['1B', 1],
      ['10B', 8],
      ['64KiB', 4096],
    ] as const
  ).map(
    ([bound, size]): Case => ({
      part: 'uploads',
      row: 'no chunks',
      title: `H303 that a longer body than ${bound} is refused, and posts no more`,
      async given() {
        const device = await startPosted(({ chunked, body }) => [chunked ? 411 : 200, body])
        return {
          set: [`upstream.url=${device.url}`, `upstream.max_body=${bound}`],
          asked: UP,
          says: `a POST with a length got 200, one in chunks 411; Postern sends it none in chunks; a longer body than ${bound} is refused`,
          after: () => expect(posts(device).map(({ body }) => body?.length)).toEqual([size, size]),
        }
      },
    }),
  ),
]
