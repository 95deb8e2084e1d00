import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { startSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { servers } from './servers.ts'
import { binary, makeSite } from './site.ts'

/** A server that reads a body only by its `Content-Length`, like most small servers in firmware. */
const server = servers.find(({ name }) => name === 'BusyBox httpd') ?? expect.fail('no BusyBox httpd')

const PIECES = [binary.subarray(0, 100_000), binary.subarray(100_000)]
const WHOLE = `${createHash('sha256').update(binary).digest('hex')}  -\n`

describe.each(['http1', 'h2'] as const)(
  'An upload of unknown length to BusyBox httpd over %s',
  (transport) => {
    let url = ''
    beforeAll(async () => {
      url = (await server.start(makeSite())) ?? ''
    })

    async function upload(config: object): Promise<readonly [number, string]> {
      needs(server.program)
      const sidecar = await startSidecar({ transport, device: { url }, config: { upstream: config } })
      const token = await sidecar.token()
      const response = await sidecar.request({ token, path: '/cgi-bin/digest', body: PIECES })
      return [response.status, response.text]
    }

    it.each(['strict', 'tolerant', 'auto'])('H176 arrives completely without a key (%s)', async (parser) => {
      expect(await upload({ parser })).toEqual([200, WHOLE])
    })

    it('does not arrive with buffer_uploads: off', async () => {
      const [, text] = await upload({ buffer_uploads: 'off' }).catch(() => [0, 'broken'])
      expect(text).not.toBe(WHOLE)
    })
  },
)
