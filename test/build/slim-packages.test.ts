import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, it } from 'vitest'
import { slimPackages } from '../../deploy/build/slim-packages.ts'
import type { FloodReport, flood } from '../../src/verify/flood.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

/** Bundles the flood as `deploy/build/bundle.ts` does. */
async function bundled(): Promise<{
  readonly module: { readonly flood: typeof flood }
  readonly code: string
}> {
  const warnings: string[] = []
  const bundle = await rolldown({
    cwd: join(import.meta.dirname, '../..'),
    input: 'src/verify/flood.ts',
    platform: 'node',
    plugins: [slimPackages],
    onLog: (_, { message }) => void warnings.push(message),
  })
  const dir = temporaryDirectory()
  const { output } = await bundle.write({ dir, format: 'cjs', entryFileNames: 'flood.cjs' })
  await bundle.close()
  expect(warnings).toEqual([])
  expect(output).toHaveLength(1)
  return { module: createRequire(import.meta.url)(join(dir, 'flood.cjs')), code: output[0].code }
}

it('autocannon without the parts that Postern does not use sends a flood', async () => {
  const { module, code } = await bundled()
  expect(code.length).toBeLessThan(150_000)
  expect(code).not.toMatch(/WebAssembly|child_process|readFileSync|\beval\(/)

  const server = createServer((_, response) => response.writeHead(429).end('x')).listen(0, '127.0.0.1')
  closeLater(() => server.closeAllConnections())
  closeLater(() => void server.close())
  await once(server, 'listening')
  const statuses: number[] = []
  const plan = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [{ method: 'GET', path: '/' }],
    connections: 5,
    pipelining: 1,
    onResponse: (_: number, { status }: { status: number }) => statuses.push(status),
  } as const
  const all = { sent: 100, responses: 100, inFlight: 0, lost: 0, faults: [] } satisfies Partial<FloodReport>
  expect(await module.flood({ ...plan, until: { requestsEach: 20 } })).toMatchObject(all)
  expect(statuses).toEqual(Array(100).fill(429))
  const timed = await module.flood({ ...plan, until: { seconds: 0.2 } })
  expect(timed).toMatchObject({ sent: timed.responses + 5, inFlight: 5, lost: 0, faults: [] })
})
