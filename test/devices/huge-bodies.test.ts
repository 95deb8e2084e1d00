import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { prepareSite } from '../process/serve.ts'
import { figuresOf } from '../support/processes.ts'
import { needs, run } from '../support/tools.ts'
import { servers } from './servers.ts'
import { HUGE, makeSite } from './site.ts'

/** The limit for buffers on the way and garbage that is not collected yet. A body in memory would take 100 MiB. */
const MOST_MEMORY = 64 << 20

/** Runs `work` and returns by how much (bytes) the resident memory of the process grew at most. */
async function peakDuring(pid: number, work: () => Promise<void>): Promise<number> {
  const before = figuresOf(pid).resident
  let peak = before
  const timer = setInterval(() => {
    peak = Math.max(peak, figuresOf(pid).resident)
  }, 20)
  await work().finally(() => clearInterval(timer))
  return peak - before
}

const digest = createHash('sha256').update(Buffer.alloc(HUGE)).digest('hex')

describe('A body of 100 MiB', () => {
  const root = makeSite()
  const urls = new Map<string, string>()
  beforeAll(async () => {
    for (const { program, start } of servers) {
      if (program !== 'nginx' && program !== 'lighttpd') continue
      const url = await start(root)
      if (url !== undefined) urls.set(program, url)
    }
  })

  /** The SHA-256 of what curl downloads from `path`, or of its upload as the program at `path` computes it. */
  async function fetchDigest(device: string, path: string, args: readonly string[]): Promise<string> {
    const site = await prepareSite({
      device: { url: urls.get(device) ?? '' },
      // It is about memory: a busy machine may take its time.
      config: { upstream: { response_timeout: '5m' } },
    })
    const sidecar = await site.serve()
    const bearer = `Authorization: Bearer ${(await sidecar.grant()).access_token}`
    const curl = ['curl', '-sS', '-H', bearer, ...args, `${sidecar.url}${path}`]
    const sum = args.length > 0 ? 'cat' : 'sha256sum'
    let summed = ''
    const peak = await peakDuring(sidecar.pid, async () => {
      const { stdout, stderr } = await run('sh', ['-c', `"$@" | ${sum}`, 'sh', ...curl])
      summed = stdout + stderr
    })
    expect(peak, `${peak >> 20} MiB`).toBeLessThan(MOST_MEMORY)
    return summed.split(' ')[0] ?? ''
  }

  it('C21 is downloaded at constant memory', async () => {
    for (const tool of ['nginx', 'curl']) needs(tool)
    expect(await fetchDigest('nginx', '/huge.bin', [])).toBe(digest)
  })

  it('C21 is uploaded at constant memory', async () => {
    for (const tool of ['lighttpd', 'curl']) needs(tool)
    const upload = ['-X', 'POST', '-T', join(root, 'huge.bin')]
    expect(await fetchDigest('lighttpd', '/cgi-bin/digest', upload)).toBe(digest)
  })
})
