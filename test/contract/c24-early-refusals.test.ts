import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { launch } from '../devices/launch.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { PATIENCE } from '../support/running-test.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'
import type { Transport } from '../support/transports.ts'

const UPLOAD = Buffer.alloc(5_000_000, 'x')
const TRIES = 5

/** Uploads 5 MB with curl, several times, and returns the statuses and exit codes. */
async function uploads(sidecar: TestSidecar, token: string, args: readonly string[]): Promise<string[]> {
  needs('curl')
  const file = join(temporaryDirectory(), 'upload')
  writeFileSync(file, UPLOAD)
  const header = join(temporaryDirectory(), 'header')
  writeFileSync(header, `Authorization: Bearer ${token}\n`)
  const seen: string[] = []
  for (let i = 0; i < TRIES; i += 1) {
    const options = [
      '-ksS',
      '-m',
      String(PATIENCE / 1000),
      '-o',
      '/dev/null',
      '-w',
      '%{http_code} %{exitcode}',
      '-H',
      `@${header}`,
    ]
    const { stdout } = await run('curl', [
      ...options,
      ...args,
      '--data-binary',
      `@${file}`,
      `${sidecar.url}/x`,
    ])
    seen.push(stdout)
  }
  return seen
}

/** The sidecar before a device that responds to the head and closes with unread bytes. */
async function inFrontOf(
  response: string,
  transport: Transport,
  ending: 'destroy' | 'reset' = 'destroy',
): Promise<readonly [TestSidecar, string]> {
  const device = await startRawDevice(async (peer) => {
    await peer.waitFor('\r\n\r\n')
    peer.socket.pause()
    peer.write(response)
    if (ending === 'reset') peer.reset()
    else peer.socket.destroy()
  })
  const sidecar = await startSidecar({ transport, device })
  return [sidecar, await sidecar.token()]
}

describe('H177 A device responds to the head of a long upload and closes:', () => {
  it('H177 the response is not lost at a device that drops it when bytes follow the head', async () => {
    const device = await startRawDevice(({ socket, write }) => {
      socket.once('data', (bytes: Buffer) => {
        if (!bytes.toString('latin1').endsWith('\r\n\r\n')) return socket.resetAndDestroy()
        write('HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno')
        return socket.end()
      })
    })
    const sidecar = await startSidecar({ device })
    const token = await sidecar.token()
    for (let i = 0; i < TRIES; i += 1) {
      expect((await sidecar.request({ token, method: 'POST', body: UPLOAD })).status).toBe(501)
    }
  })

  it.each([
    ['with Expect', []],
    ['at once', ['-H', 'Expect:']],
  ])('H177 webfsd refuses an upload that curl sends %s', async (_how, args) => {
    needs('webfsd')
    const url = await launch('webfsd', (port) => [
      '-F',
      '-i',
      '127.0.0.1',
      '-p',
      `${port}`,
      '-r',
      temporaryDirectory(),
    ])
    // The clock stands still, so no byte of the body follows the head before webfsd has answered.
    const sidecar = await startSidecar({ device: { url: url ?? '' } })
    expect(await uploads(sidecar, await sidecar.token(), args)).toEqual(Array(TRIES).fill('501 0'))
  })

  it('H177 a response that the device breaks off reaches an HTTP/1 client that still sends, broken, without a reset', async () => {
    const [sidecar, token] = await inFrontOf('HTTP/1.0 501 Not Implemented\r\n\r\nno', 'tls', 'reset')
    for (const args of [[], ['-H', 'Expect:']]) {
      const seen = await uploads(sidecar, token, ['--http1.1', ...args])
      for (const each of seen) expect(each).toMatch(/^501 (0|18)$/)
    }
  })

  it.each([
    ['with a length', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'],
    ['without a body', 'HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'],
    ['with 204', 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'],
    ['with an error', 'HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno'],
  ])('H177 curl ends over HTTP/2 when the response comes %s', async (_what, response) => {
    const [sidecar, token] = await inFrontOf(response, 'h2')
    const seen = await uploads(sidecar, token, ['--http2'])
    expect(seen).toEqual(Array(TRIES).fill(`${response.slice(9, 12)} 0`))
  })
})
