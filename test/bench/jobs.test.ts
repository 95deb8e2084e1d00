import { expect, it } from 'vitest'
import { temporaryFolder } from '../../bench/child.ts'
import { heldText, hold } from '../../bench/contest/hold.ts'
import { startNodeDevice } from '../../bench/device.ts'
import { makeCertificate } from '../../bench/peers/certificate.ts'
import { fastifyJob } from '../../bench/peers/fastify-job.ts'
import { haproxyLoginsJob, haproxyLuaJob } from '../../bench/peers/haproxy-job/haproxy-job.ts'
import type { Job } from '../../bench/peers/job.ts'
import { nginxJob } from '../../bench/peers/nginx-job.ts'
import { posternJob } from '../../bench/peers/postern.ts'
import { sourceProgram } from '../../bench/program.ts'
import { requestOnce } from '../../bench/request.ts'
import { cleaningUp } from '../../bench/run-program.ts'
import { askForToken } from '../../bench/sidecar.ts'
import { needs } from '../support/tools.ts'

const JOBS: readonly (Job & { readonly program?: string })[] = [
  posternJob(sourceProgram()),
  { ...haproxyLuaJob, program: 'haproxy' },
  { ...haproxyLoginsJob, program: 'haproxy' },
  { ...nginxJob, program: 'nginx' },
  fastifyJob,
]

const LIMITS = { api: { requests: 60, window: 60 }, oauth: { requests: 30, window: 60 } }

it.each(JOBS)('$name does the whole job that Postern is measured beside', async ({ program, ...job }) => {
  if (program !== undefined) needs(program)
  await cleaningUp(async () => {
    const place = { devicePort: (await startNodeDevice(undefined)).port, core: undefined }
    const verdicts = await hold(job, place, await makeCertificate())
    const departures = verdicts.flatMap(({ id, departures }) =>
      departures.map(({ sent, came }) => [id, sent, came]),
    )
    expect(departures).toEqual([])
    expect(heldText(verdicts)).toBe('19 kept')
  })
})

it.each(JOBS.slice(1))('$name keeps its tokens over a restart', async ({ program, ...job }) => {
  if (program !== undefined) needs(program)
  await cleaningUp(async () => {
    const place = { devicePort: (await startNodeDevice(undefined)).port, core: undefined }
    const settings = { limits: LIMITS, pair: undefined, state: await temporaryFolder() }
    const token = await cleaningUp(async () => askForToken((await job.start(place, settings)).url))
    const { url } = await job.start(place, settings)
    const statusOf = async (shown: string): Promise<number> =>
      (await requestOnce(url, { headers: { Authorization: `Bearer ${shown}` } })).status
    expect([await statusOf(token), await statusOf(`${token}x`)]).toEqual([200, 401])
  })
})
