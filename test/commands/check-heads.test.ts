import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { folderToServe, startNginx } from '../devices/webdav-servers.ts'
import { startDevice } from '../support/device.ts'
import { nextRequest, startScripted } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { runCheck } from './run-check.ts'

/** What `check` prints of a device, and the settings that it says to write, read as a configuration. */
async function check(url: string, ...set: readonly string[]) {
  const { code, printed } = await runCheck(url, set)
  const [, lines] = /; write (upstream: .*)\n/.exec(printed) ?? []
  const file = { path: 'postern.yaml', text: `password: {file: x}\n${lines}\n` }
  const written = lines && loadConfig({ file, env: {}, sets: [`upstream.url=${url}`] }).upstream
  return { code, printed, lines, written }
}

describe('postern check', () => {
  it('H172 prints the bytes of the heads that the device gets, as it gets them', async () => {
    const sizes: number[] = []
    const device = await startScripted(async (peer) => {
      sizes.push((await nextRequest(peer)).length)
      peer.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    const set = ['upstream.reuse=never', 'upstream.headers.X-Key=hunter2']
    const { printed } = await check(device.url, ...set)
    const [, curl, browser] =
      /the head of a GET has (\d+) bytes from curl, (\d+) from Chromium\n/.exec(printed) ?? []
    expect(sizes.slice(1, 3)).toEqual([Number(curl), Number(browser)])
    const short = await check(device.url, ...set, 'upstream.forwarding=off', 'upstream.drop=sec-*, cookie')
    expect(Number(/(\d+) from Chromium/.exec(short.printed)?.[1])).toBeLessThan(512)
    expect(Number(browser)).toBeGreaterThan(800)
  })

  it.each([
    ['another Host than its own', 'preserve', 'target'],
    ['its own Host', 'target', 'preserve'],
  ])('H175 finds the host for a device that refuses %s', async (_what, present, wanted) => {
    for (const status of [400, 403, 421]) {
      const device = await startDevice((request, response) => {
        const own = request.headers.host === new URL(device.url).host
        // The first request of `check` names the device itself.
        const first = device.requests.length === 1
        response.writeHead(first || own === (wanted === 'target') ? 200 : status).end()
      })
      const { printed, lines, written } = await check(device.url, `upstream.host=${present}`)
      expect(printed).toContain(
        `WARNING device: answered ${status} to a request of curl through Postern, and 200 with`,
      )
      expect([lines, written]).toEqual([
        `upstream: {host: ${wanted}}`,
        expect.objectContaining({ host: wanted }),
      ])
      // Three of them, or more on a busy machine, look whether kept connections are delayed.
      expect(device.requests.length).toBeLessThan(30)
    }
  })

  it.each([
    [
      'reads 512 bytes',
      (head: string) => head.length <= 512,
      { forwarding: 'off', drop: ['cookie', 'sec-*'] },
    ],
    ['refuses Via', (head: string) => !/^via:/im.test(head), { forwarding: 'off', drop: [] }],
  ] as const)('H172 finds the settings for a device that %s', async (_what, fits, settings) => {
    const device = await startScripted(async (peer) => {
      const status = fits(await nextRequest(peer)) ? '200 OK' : '400 Bad'
      peer.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`)
    })
    const { code, written } = await check(device.url)
    expect([code, written]).toEqual([0, expect.objectContaining(settings)])
  })

  it.each(['answers 505', 'closes'])(
    'H174 finds version: "1.0" for a device that %s otherwise',
    async (how) => {
      const device = await startScripted(async (peer) => {
        const old = (await nextRequest(peer)).includes(' HTTP/1.0\r\n')
        peer.end(old ? 'HTTP/1.0 200 OK\r\n\r\nok' : how === 'closes' ? '' : 'HTTP/1.0 505 No\r\n\r\n')
      })
      const { code, written } = await check(device.url)
      expect([code, written]).toEqual([how === 'closes' ? 1 : 0, expect.objectContaining({ version: '1.0' })])
    },
  )

  /** A device that compresses its page if a request fits. */
  async function startCompressing(fits: (head: string) => boolean) {
    return startScripted(async (peer) => {
      const head = await nextRequest(peer)
      const packs = /^accept-encoding:.*gzip/im.test(head) && fits(head)
      const fields = packs ? 'Content-Encoding: gzip\r\n' : ''
      const body = 'long enough '.repeat(100)
      peer.end(
        `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`,
      )
    })
  }
  const withoutVia = (head: string): boolean => !/^via:/im.test(head)

  it('H172 finds that a device compresses nothing for a request with Via', async () => {
    const device = await startCompressing(withoutVia)
    const { code, printed, written } = await check(device.url)
    expect(printed).toContain(
      `WARNING device: ${device.url} answered 200; it compresses its page only for requests without Via\n`,
    )
    expect([code, written]).toEqual([0, expect.objectContaining({ drop: ['via'], forwarding: 'full' })])
    const kept = await check(device.url, 'upstream.drop=x-a, x-*')
    expect(kept.written).toMatchObject({ drop: ['x-a', 'x-*', 'via'] })
    const { printed: page } = await runCheck(device.url, ['upstream.health.path=/'], { pages: ['/big?x=1'] })
    expect(page).toContain(
      'WARNING page /big?x=1: answered 200; it compresses its page only for requests without Via\n',
    )
  })

  it.each([
    ['compresses for all', () => true, []],
    ['compresses for none', () => false, []],
    ['gets no Via', withoutVia, ['upstream.drop=via']],
    ['gets no forwarding fields', withoutVia, ['upstream.forwarding=minimal']],
  ] as const)('H172 says nothing of a device that %s', async (_what, fits, set) => {
    const device = await startCompressing(fits)
    const { code, printed, lines } = await check(device.url, ...set)
    expect([code, lines, printed]).toEqual([0, undefined, expect.stringContaining(' answered 200\n')])
  })

  it('H172 finds it in front of nginx, and clients get the page compressed as it says', async () => {
    needs('nginx')
    const root = folderToServe()
    writeFileSync(join(root, 'index.html'), '<p>page</p>\n'.repeat(40_000))
    const url = (await startNginx(root, 'gzip on;')) ?? expect.fail('it did not start')
    const { printed, written } = await check(url)
    expect(printed).toContain('it compresses its page only for requests without Via')
    const lengths: number[] = []
    for (const drop of [[], typeof written === 'object' ? written.drop : []]) {
      const sidecar = await startSidecar({ device: { url }, config: { upstream: { drop } } })
      const fields = ['Accept-Encoding', 'gzip']
      lengths.push((await sidecar.request({ token: await sidecar.token(), fields })).body.length)
    }
    expect(lengths).toEqual([480_000, expect.toSatisfy((length: number) => length < 10_000)])
  })

  it('H172 says nothing to write for a page that the device refuses to all', async () => {
    const device = await startDevice((_request, response) => response.writeHead(403).end())
    const { code, lines, printed } = await check(device.url)
    expect([code, lines, printed]).toEqual([0, undefined, expect.stringContaining(' answered 403\n')])
  })
})
