import { join } from 'node:path'
import { expect } from 'vitest'
import { control } from '../../src/commands/control.ts'
import type { Explanation, RequestRow } from '../../src/record/explanation.ts'
import type { TestSidecar } from './sidecar.ts'

/** The lines of the access log so far, parsed. */
export function accessLines(sidecar: Pick<TestSidecar, 'logLines'>): Record<string, unknown>[] {
  return sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'request')
}

/** What the control socket answers. */
export const ask = (sidecar: TestSidecar, path: string): Promise<object> =>
  control(join(sidecar.directory, 'state'), { method: 'GET', path })

export async function explanationsOf(sidecar: TestSidecar, id: string): Promise<readonly Explanation[]> {
  const answer = await ask(sidecar, `/explain?id=${encodeURIComponent(id)}`)
  return (answer as { explanations: Explanation[] }).explanations
}

export async function recent(sidecar: TestSidecar): Promise<readonly RequestRow[]> {
  return ((await ask(sidecar, '/requests')) as { requests: RequestRow[] }).requests
}

/** The findings about the last request for a path, by their titles. A request is recorded when it has ended. */
export async function explained(sidecar: TestSidecar, path: string): Promise<Record<string, string>> {
  const row = await expect
    .poll(async () => (await recent(sidecar)).find((each) => each.path === path))
    .toBeDefined()
    .then(async () => (await recent(sidecar)).find((each) => each.path === path))
  const [explanation] = await explanationsOf(sidecar, row?.id ?? '')
  expect(explanation?.request).toEqual(row)
  return Object.fromEntries(explanation?.findings.map(({ title, text }) => [title, text]) ?? [])
}
