import type { TestSidecar } from './sidecar.ts'

/** The lines of the access log so far, parsed. */
export function accessLines(sidecar: Pick<TestSidecar, 'logLines'>): Record<string, unknown>[] {
  return sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'request')
}
