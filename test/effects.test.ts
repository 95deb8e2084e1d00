import { join } from 'node:path'
import { expect, it } from 'vitest'
import { knownKeys } from '../src/config/known-keys.ts'
import { createMetrics } from '../src/record/metrics.ts'
import { readTree, type SourceTree } from './support/source-tree.ts'

// Whether a new key or metric does anything: the code reads the key, the code writes the metric, and a test shows the effect of each. No
// Prometheus is needed for the question.

const root = join(import.meta.dirname, '..')
const source = readTree(root, 'src')
const tests = readTree(root, 'test')

/** The text of the files, without those whose paths match. */
function textOf(tree: SourceTree, without: RegExp): string {
  return [...tree].flatMap(([path, text]) => (without.test(path) ? [] : text)).join('\n')
}

const camelCase = (key: string): string => key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** The keys that hold a value, without the sections above them. */
const leaves = knownKeys().filter(({ field }) => field.keys.size === 0 || field.kind === 'either')

it('H237 each key is read by code outside of the rooms that load it', () => {
  const code = textOf(source, /^src\/(?:config|commands\/help)\b/)
  const unread = leaves.filter(({ path }) => !new RegExp(`\\b${camelCase(path.at(-1) ?? '')}\\b`).test(code))
  expect(unread.map(({ path }) => path.join('.'))).toEqual([])
})

it('H237 each key is set by a test of what it does, not only by those that list all keys', () => {
  const code = textOf(tests, /^test\/(?:config|effects|promises)\b/)
  const untried = leaves.filter(({ path }) => {
    const key = path.at(-1) ?? ''
    return !new RegExp(`\\b(?:${key}|${camelCase(key)})\\b`).test(code)
  })
  expect(untried.map(({ path }) => path.join('.'))).toEqual([])
})

it('H237 each metric is read by a test of what moves it, not only by those of the dashboard and the pages', async () => {
  const metrics = createMetrics({ version: '0', node: '0' })
  metrics.sharedStore()
  const names = [...(await metrics.text()).matchAll(/^# TYPE (postern_\w+)/gm)].map(([, name = '']) => name)
  expect(names.length).toBeGreaterThan(30)
  const code = textOf(tests, /^test\/(?:grafana|pages|effects|promises)\b/)
  expect(names.filter((name) => !new RegExp(`\\b${name}(?:_count|_sum|_bucket)?\\b`).test(code))).toEqual([])
})

it('H237 each way to count is called by the code that counts', () => {
  const code = textOf(source, /^src\/record\/(?:\w+-)?metrics\.ts$/)
  const metrics = createMetrics({ version: '0', node: '0' })
  expect(
    Object.keys(metrics).filter((name) => !new RegExp(`\\.${name}\\b|\\b${name}\\b.*= metrics`).test(code)),
  ).toEqual([])
})
