import { join } from 'node:path'
import { expect, it } from 'vitest'
import { importCycles, importsOf, readTree } from '../support/source-tree.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The files of the bench. Results are not in git. */
const FILES = new Map([...readTree(ROOT, 'bench')].filter(([path]) => !path.includes('/results/')))

/** Each layer may import the layers behind it, and its own files. */
const LAYERS = [
  /^bench\/(?:bench|options|limits|weigh|many-devices|small-board)\.ts$/,
  /^bench\/(?:report\/|compare\.ts)/,
  /^bench\/(?:fleet|limits|weigh|figures)\//,
  /^bench\/contest\//,
  /^bench\/lab\.ts$/,
  /^bench\/(?:peers|load|floor)\/|^bench\/device\.ts$/,
  /^bench\/(?:sidecar|program|machine)\.ts$/,
  /^bench\/(?:request|child|cgroup|run-program|process-usage|node-device|unit-environment)\.ts$|^bench\/models\//,
  /^bench\/(?:figure|measure|format)\.ts$/,
]

it('the bench imports downwards only, and no file imports itself through another', () => {
  const layerOf = (path: string): number => LAYERS.findIndex((layer) => layer.test(path))
  const code = new Map([...FILES].filter(([path]) => path.endsWith('.ts')))
  // The bench and the tests have parts of each other.
  expect(importCycles(new Map([...code, ...readTree(ROOT, 'test/support')]))).toEqual([])
  expect([...code.keys()].filter((path) => layerOf(path) < 0)).toEqual([])
  const upwards = [...code].flatMap(([path, text]) =>
    importsOf(path, text)
      .filter((target) => code.has(target) && layerOf(target) < layerOf(path))
      .map((target) => `${path} imports ${target}`),
  )
  expect(upwards).toEqual([])
})
