import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { startSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { servers } from './servers.ts'
import { binary, makeSite } from './site.ts'

/** Reads a body only as long as `Content-Length` says, as most small servers in firmware. */
const server = servers.find(({ name }) => name === 'BusyBox httpd') ?? expect.fail('no BusyBox httpd')

const PIECES = [binary.subarray(0, 100_000), binary.subarray(100_000)]
const WHOLE = `${createHash('sha256').update(binary).digest('hex')}  -\n`

describe.each(['http1', 'h2'] as const)('BusyBox httpd, an upload of unknown length over %s', (transport) => {
  let url = ''
  beforeAll(async () => {
    url = (await server.start(makeSite())) ?? ''
  })

  async function upload(config: object): Promise<readonly [number, string]> {
    needs(server.program)
    const sidecar = await startSidecar({ transport, device: { url }, config: { upstream: config } })
    const token = await sidecar.token()
    const answer = await sidecar.request({ token, path: '/cgi-bin/digest', body: PIECES })
    return [answer.status, answer.text]
  }

  it.each(['strict', 'tolerant', 'auto'])('arrives whole when it is collected (%s)', async (parser) => {
    expect(await upload({ parser, buffer_uploads: '300000' })).toEqual([200, WHOLE])
  })

  it('does not arrive otherwise', async () => {
    const [, text] = await upload({}).catch(() => [0, 'broken'])
    expect(text).not.toBe(WHOLE)
  })
})
