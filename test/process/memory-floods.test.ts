import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { shippedEnvironment } from '../build/shipped.ts'
import { closeLater } from '../support/cleanup.ts'
import { memoryCgroup } from './cgroup.ts'
import { prepareSite, type Served } from './serve.ts'

const MIB = 1024 ** 2

/** The sizes and floods of the suite: the others, and 30 s of each, are for the machine tests. */
const CASES = [
  [128, 'unread HTTP/2 answers'],
  [128, 'heads of 12 KB'],
  [256, 'bodies that never come'],
] as const

/** A flood goes on until something was shed, and then until the other client has had so many responses. */
const RESPONSES = 30

const FLOODS = join(import.meta.dirname, '..', 'machine', 'memory-floods.ts')

/** The memory that no file of the disk can give back (bytes). */
function anonymous({ pid }: Served): number {
  const [, kilobytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return 1024 * Number(kilobytes)
}

it.each(CASES)(
  'H250 with %i MiB it survives a flood (%s), and another client loses nothing',
  async (mib, flood) => {
    const site = await prepareSite({ transport: 'h2', config: { limits: { api: { requests: 1_000_000 } } } })
    const cgroup = memoryCgroup(mib * MIB)
    // Without a cgroup, the size of the account is that of one, and the resident memory is judged.
    if (cgroup === undefined) site.configure({ listen: { memory: Math.round(0.45 * (mib - 56) * MIB) } })
    const sidecar = await site.serve({ env: shippedEnvironment(), under: cgroup?.prefix ?? [] })
    const { access_token: token } = await sidecar.grant()
    const { port } = new URL(sidecar.url)

    const args = [FLOODS, flood, '--port', port, `--token=${token}`, '--seconds', '100']
    const flooding = spawn(process.execPath, args, { stdio: 'ignore' })
    closeLater(() => void flooding.kill('SIGKILL'))
    let peak = 0
    for (let left = RESPONSES; left > 0; ) {
      expect((await sidecar.request({ path: '/x', token })).status).toBe(200)
      expect((await fetch(new URL('/healthz', sidecar.adminUrl))).status).toBe(200)
      peak = Math.max(peak, anonymous(sidecar))
      if ((await sidecar.metric('postern_shed_total')) > 0) left -= 1
    }
    flooding.kill('SIGKILL')
    await once(flooding, 'exit')
    expect(cgroup?.kills() ?? 0).toBe(0)
    expect(peak).toBeLessThan(mib * MIB)
    await expect.poll(() => sidecar.metric('postern_memory_bytes')).toBeLessThan(MIB)
  },
)
