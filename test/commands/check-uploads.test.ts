import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { launch } from '../devices/launch.ts'
import { startDigestDevice } from '../sign-in/devices.ts'
import { redfishAuth, startRedfishDevice } from '../sign-in/session-devices.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { readBody, startDevice } from '../support/device.ts'
import { nextRequest, startScripted } from '../support/scripted.ts'
import { needs } from '../support/tools.ts'
import { runCheck } from './run-check.ts'

const ANY_LENGTH = '; a body of any length passes (max_body: off)'

/** What `check --uploads` prints of a device: its lines on uploads. */
async function check(url: string, uploads: string | undefined, ...set: readonly string[]) {
  const { code, printed } = await runCheck(url, set, uploads === undefined ? {} : { uploads })
  const [, line = '', remedy = ''] = /^(.*uploads to .*)\n(?: {8}(.*)\n)?/m.exec(printed) ?? []
  return { code, line, remedy }
}

/** A device that answers a POST by `answer`; undefined: it closes the connection. */
function startPosted(answer: (request: { chunked: boolean; body: string }) => [number, string] | undefined) {
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

describe('postern check --uploads', () => {
  it('sends two POSTs with one body, with a length and in chunks, and none without the option', async () => {
    const device = await startPosted(({ body }) => [201, body])
    expect((await check(device.url, undefined)).line).toBe('')
    expect(posts(device)).toEqual([])
    const { code, line } = await check(device.url, '/up?x=1', 'upstream.headers.X-Key=k')
    expect([code, line]).toEqual([
      0,
      'ok      uploads to /up?x=1: a POST with a length got 201, one in chunks 201 with the same body; a body of any length passes (max_body: off)',
    ])
    const [whole, chunked, ...others] = posts(device)
    expect(others).toEqual([])
    expect([whole?.target, chunked?.target]).toEqual(['/up?x=1', '/up?x=1'])
    expect([whole?.header('content-length'), whole?.header('transfer-encoding')]).toEqual(['4096', undefined])
    expect([chunked?.header('content-length'), chunked?.header('transfer-encoding')]).toEqual([
      undefined,
      'chunked',
    ])
    expect(whole?.body).toHaveLength(4096)
    expect(chunked?.body).toEqual(whole?.body)
    expect([whole?.header('x-key'), chunked?.header('x-key')]).toEqual(['k', 'k'])
  })

  it('sends the body in several chunks', async () => {
    const bodies: string[] = []
    const device = await startScripted(async (peer) => {
      const head = await nextRequest(peer)
      if (/chunked/i.test(head)) bodies.push(await peer.waitFor('\r\n0\r\n\r\n'))
      peer.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    const { line } = await check(device.url, '/up')
    expect(line).toContain('200 with the same body')
    expect(bodies.map((body) => body.match(/^400\r$/gm)?.length)).toEqual([4])
  })

  it.each([
    ['411', [411, 'no'], '411'],
    ['501', [501, 'no'], '501'],
    ['400', [400, 'no'], '400'],
    ['no answer', undefined, 'no answer'],
    ['the length 0', [200, '0'], '200 with another body'],
  ] as const)(
    'warns of a device that answers %s to chunks, with the line to write',
    async (_what, answer, shown) => {
      const device = await startPosted(({ chunked, body }) =>
        chunked ? answer && [...answer] : [200, String(body.length)],
      )
      const found = `uploads to /up: a POST with a length got 200, one in chunks ${shown}`
      const auto = await check(device.url, '/up')
      expect([auto.code, auto.line]).toEqual([0, `WARNING ${found}${ANY_LENGTH}`])
      expect(auto.remedy).toBe(
        'of an upload in chunks the device may take only a part, or nothing; for uploads above 1 MiB, write upstream: {buffer_uploads: 16MiB}, or the size of the longest',
      )
      const off = await check(device.url, '/up', 'upstream.buffer_uploads=off')
      expect(off.line).toBe(`WARNING ${found}${ANY_LENGTH}`)
      const [, lines = ''] = /; write (upstream: \{.*?\});/.exec(off.remedy) ?? []
      const file = { path: 'postern.yaml', text: `password: {file: x}\n${lines}\n` }
      expect(loadConfig({ file, env: {}, sets: [`upstream.url=${device.url}`] }).upstream.bufferUploads).toBe(
        'auto',
      )
      const sized = await check(device.url, '/up', 'upstream.buffer_uploads=2MiB')
      expect(sized.line).toBe(`ok      ${found}; Postern sends it none in chunks${ANY_LENGTH}`)
    },
  )

  it.each([
    ['404 to both', () => [404, 'no'] as [number, string], '404, one in chunks 404'],
    [
      'an error to a length alone',
      ({ chunked }: { chunked: boolean }) => [chunked ? 200 : 500, ''] as [number, string],
      '500, one in chunks 200',
    ],
  ])('concludes nothing from %s', async (_what, answer, shown) => {
    const { code, line, remedy } = await check((await startPosted(answer)).url, '/up')
    expect([code, line]).toEqual([
      0,
      `WARNING uploads to /up: a POST with a length got ${shown}${ANY_LENGTH}`,
    ])
    expect(remedy).toBe(
      'it is unknown whether the device reads an upload in chunks; name a path of the device that takes a POST',
    )
  })

  it('sends none in chunks to a device that does not answer the one with a length', async () => {
    const device = await startPosted(() => undefined)
    const { code, line } = await check(device.url, '/up')
    expect([code, line]).toEqual([
      1,
      'FAILED  uploads to /up: --set: upstream.url: no answer to a POST with a length (connection_terminated)',
    ])
    expect(posts(device)).toHaveLength(1)
  })

  it('sends nothing in HTTP/1.0', async () => {
    const device = await startPosted(() => [200, ''])
    const { line } = await check(device.url, '/up', 'upstream.version=1.0')
    expect([line, posts(device)]).toEqual([
      'ok      uploads to /up: nothing was sent, because HTTP/1.0 has no chunks',
      [],
    ])
  })

  it.each([
    ['1B', 1],
    ['10B', 8],
    ['64KiB', 4096],
  ])('H303 posts no more than max_body: %s, and says that a longer body is refused', async (bound, size) => {
    const device = await startPosted(({ chunked, body }) => [chunked ? 411 : 200, body])
    const { line } = await check(device.url, '/up', `upstream.max_body=${bound}`)
    expect(line).toBe(
      `ok      uploads to /up: a POST with a length got 200, one in chunks 411; Postern sends it none in chunks; a longer body than ${bound} is refused`,
    )
    expect(posts(device).map(({ body }) => body?.length)).toEqual([size, size])
  })

  it('asks the service of the path, and writes the line below its key', async () => {
    const main = await startPosted(() => [200, ''])
    const camera = await startPosted(({ chunked }) => [chunked ? 411 : 200, ''])
    const { remedy } = await check(main.url, '/cam/up', `upstream.routes./cam/.url=${camera.url}`)
    expect(remedy).toContain('write upstream.routes./cam/: {buffer_uploads: 16MiB}')
    expect([posts(main), posts(camera).length]).toEqual([[], 2])
  })

  it('signs in as the configuration says, and signs out; posts nothing if the device refuses the login', async () => {
    const redfish = await startRedfishDevice()
    const file = join(temporaryDirectory(), 'device-password')
    const auth = JSON.stringify({ ...redfishAuth, password: { file } })
    writeFileSync(file, redfish.password, { mode: 0o600 })
    const { line } = await check(redfish.device.url, '/up', `upstream.auth=${auth}`)
    expect(line).toMatch(/^ok .* got 200, one in chunks 200/)
    expect(redfish.sessions.size).toBe(0)
    writeFileSync(file, 'wrong')
    const before = redfish.device.requests.length
    const refused = await check(redfish.device.url, '/up', `upstream.auth=${auth}`)
    expect([refused.line, refused.remedy]).toEqual([
      'WARNING uploads to /up: nothing was sent, because Postern is not signed in',
      expect.stringMatching(/; correct upstream\.auth$/),
    ])
    const targets = redfish.device.requests.slice(before).map(({ target }) => target)
    expect(targets).not.toContain('/up')
  })

  it('repeats a POST that a device refuses because it takes each Digest nonce once', async () => {
    const locked = await startDigestDevice()
    locked.oneTime = true
    const file = join(temporaryDirectory(), 'device-password')
    writeFileSync(file, locked.password, { mode: 0o600 })
    const auth = JSON.stringify({ kind: 'digest', user: locked.user, password: { file } })
    const { line } = await check(locked.url, '/up', `upstream.auth=${auth}`)
    expect(line).toMatch(/^ok .* got 200, one in chunks 200/)
  })

  it.each(['up', '/a b', '/a\r\nX: y', '/up#x', '', '/cam/../up'])('refuses the path %j', async (path) => {
    const device = await startPosted(() => [200, ''])
    const checked = check(device.url, path, `upstream.routes./cam/.url=${device.url}`)
    await expect(checked).rejects.toThrow(/^--uploads must be a path of one service/)
    expect(device.requests).toEqual([])
  })

  it('finds out that a program of BusyBox httpd gets no body in chunks', async () => {
    needs('busybox')
    const root = temporaryDirectory()
    mkdirSync(join(root, 'cgi-bin'))
    const program =
      '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n"\nhead -c "$((CONTENT_LENGTH))" | wc -c\n'
    writeFileSync(join(root, 'cgi-bin/length'), program, { mode: 0o755 })
    const url = await launch('busybox', (port) => ['httpd', '-f', '-p', `127.0.0.1:${port}`, '-h', root])
    const { code, line } = await check(String(url), '/cgi-bin/length')
    expect([code, line]).toEqual([
      0,
      'WARNING uploads to /cgi-bin/length: a POST with a length got 200, one in chunks 200 with another body; a body of any length passes (max_body: off)',
    ])
  })
})
