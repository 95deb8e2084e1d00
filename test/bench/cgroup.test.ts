import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { makeCgroup } from '../../bench/cgroup.ts'
import { cleaningUp } from '../../bench/run-program.ts'

/** The cgroups of this process at the top of all hierarchies. */
function cgroups(): readonly string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const folders = mounts.map((line) => line.split(' ')).filter(([, , type = '']) => type.startsWith('cgroup'))
  return folders
    .flatMap(([, folder = '']) => readdirSync(folder))
    .filter((name) => name === `postern-bench-${process.pid}`)
}

it('where a cgroup cannot be made the bench gets the reason, and nothing is left of it', async () => {
  const left = await cleaningUp(async () => {
    // No kernel takes this quota, and not every user may make one.
    expect(await makeCgroup({ processor: Number.NaN, memory: 128 })).toMatch(/^E[A-Z]+: /)
    return cgroups
  })
  expect(left()).toEqual([])
})
