import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import type { YamlPart } from '../support/sidecar.ts'
import type { Model } from './models/firmware.ts'
import { type ModelRow, models } from './models.ts'
import { modelsPart } from './page.ts'
import { startInFront } from './scenarios.ts'

const folder = join(import.meta.dirname, 'models')

/** Runs the scenario in front of a new device, over one transport. */
async function run({ name, scenario }: ModelRow, transport: 'http1' | 'h2', keys: YamlPart): Promise<void> {
  // Every file of the folder exports its device; the test below holds it.
  const { device } = (await import(join(folder, `${name}.ts`))) as { readonly device: Model }
  const running = await device.start()
  closeLater(running.stop)
  const password = join(temporaryDirectory(), 'password')
  writeFileSync(password, 'secret\n', { mode: 0o600 })
  const upstream = JSON.parse(
    JSON.stringify(keys).replaceAll('{"file":"F"}', JSON.stringify({ file: password })),
  )
  await scenario(startInFront(running.url, transport, upstream), transport)
}

async function runBoth(row: ModelRow, keys: YamlPart): Promise<void> {
  for (const transport of ['http1', 'h2'] as const) await run(row, transport, keys)
}

describe('A model of firmware', () => {
  for (const row of models) {
    const { name, fails, keys } = row
    if (keys !== undefined) {
      const configured = Object.keys(keys).length === 0 ? 'by default' : `with ${JSON.stringify(keys)}`
      it(`${name} works ${configured}`, () => runBoth(row, keys))
    }
    if (fails !== undefined)
      it(`${name} does not work by default`, () => expect(runBoth(row, {})).rejects.toThrow())
  }

  it('stands on docs/devices.md with its report', () => {
    expect(readFileSync(join(import.meta.dirname, '../../docs/devices.md'), 'utf8')).toContain(modelsPart())
  })

  it('has a row, a docstring and a report each', () => {
    const files = readdirSync(folder).filter((file) => file !== 'firmware.ts')
    expect(files.toSorted()).toEqual(models.map(({ name }) => `${name}.ts`).toSorted())
    for (const file of files) {
      const text = readFileSync(join(folder, file), 'utf8')
      expect(text, file).toMatch(/\/\*\*\n \* [\s\S]*?\n \* https:\/\/\S+\n \*\/\n/)
      expect(text, file).toContain('export const device: Model =')
    }
  })
})
