import { describePlan, type MemoryPlan, planMemory } from '../../compose/client-memory.ts'
import type { Config } from '../../config/schema.ts'
import { SetupError } from '../../system/setup-error.ts'
import { control } from '../control.ts'
import type { Status } from '../status.ts'
import { check } from './part.ts'

/** The memory that clients may hold, and the keys that admit more. */
export const MEMORY = check({
  subjects: ({ config }) => [config],
  about: () => ({
    name: 'memory',
    key: 'listen.memory',
    meaning: 'what clients hold is not bounded',
    remedy: 'set listen.memory',
  }),
  look: planAsRunning,
  rows: { planned: describePlan },
})

/** How long the running sidecar may take to answer (ms). */
const ANSWERED_WITHIN = 2_000

/** Plans the memory by the bounds of the sidecar that runs on this `state_dir`, if any: its unit may allow less than this command has. */
export async function planAsRunning(config: Config): Promise<MemoryPlan> {
  const asked = { method: 'GET', path: '/status' }
  const running = await control<Status>(config.stateDir, asked, ANSWERED_WITHIN).catch((error: unknown) => {
    if (error instanceof SetupError) return undefined
    throw error
  })
  return planMemory(config, running?.memory?.bounds)
}
