import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { launch } from '../../devices/launch.ts'
import { startDigestDevice } from '../../sign-in/devices.ts'
import { temporaryDirectory } from '../../support/certificate.ts'
import { readBody, startDevice } from '../../support/device.ts'
import { nextRequest, startRawDevice } from '../../support/raw-device.ts'
import { needs } from '../../support/tools.ts'
import { type Case, casesOf } from './case.ts'
import { startRedfish } from './login-cases.ts'

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
        const device = await startRawDevice(async (peer) => {
          const head = await nextRequest(peer)
          if (/chunked/i.test(head)) bodies.push(await peer.waitFor('\r\n0\r\n\r\n'))
          peer.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
        })
        return {
          set: [`upstream.url=${device.url}`],
          asked: UP,
          after: () => expect(bodies.map((body) => body.match(/^400\r$/gm)?.length)).toEqual([4]),
        }
      },
      async 'how a device takes an upload behind a login, and ends the session'({ file }) {
        const { redfish, set } = await startRedfish(file)
        return {
          set,
          asked: UP,
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
        }
      },
    },
    'not signed in': {
      async 'no login, and posts nothing'({ file }) {
        const { redfish, set } = await startRedfish(file, { password: 'wrong' })
        return {
          set,
          asked: UP,
          after: () => expect(redfish.device.requests.map(({ target }) => target)).not.toContain('/up'),
        }
      },
    },
  }),
  ...LOSING.flatMap(([shown, answer]): Case[] => {
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
        }),
      },
      {
        part: 'uploads',
        row: 'chunks are lost',
        title: `the same (${shown}) with buffer_uploads: off`,
        given: async () => ({
          ...(await given('upstream.buffer_uploads=off')),
          writes: { bufferUploads: 'auto' },
        }),
      },
      {
        part: 'uploads',
        row: 'no chunks',
        title: `the same (${shown}) where Postern sends no chunks`,
        given: async () => ({
          ...(await given('upstream.buffer_uploads=2MiB')),
        }),
      },
    ]
  }),
  ...(
    [
      ['404 to both', () => [404, 'no']],
      ['an error to a length alone', ({ chunked }) => [chunked ? 200 : 500, '']],
    ] satisfies [string, (posted: Posted) => Answer][]
  ).map(
    ([what, answer]): Case => ({
      part: 'uploads',
      row: 'error of the path',
      title: `nothing in ${what}`,
      given: async () => ({
        set: [`upstream.url=${(await startPosted(answer)).url}`],
        asked: UP,
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
          after: () => expect(posts(device).map(({ body }) => body?.length)).toEqual([size, size]),
        }
      },
    }),
  ),
]
