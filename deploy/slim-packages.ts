import type { Plugin } from 'rolldown'

/**
 * What of some packages the program uses, in the place of the whole: what nobody calls would be read, held in memory and
 * in part run at every start.
 */
const SLIM: Readonly<Record<string, string>> = {
  // Without the gateway to push to, the registry of a cluster, and quantiles.
  'prom-client': `
    export { default as Registry } from 'prom-client/lib/registry.js'
    export { default as Counter } from 'prom-client/lib/counter.js'
    export { default as Gauge } from 'prom-client/lib/gauge.js'
    export { default as collectDefaultMetrics } from 'prom-client/lib/defaultMetrics.js'
  `,
  // `prom-client` asks it for the trace that a sample belongs to, which nobody here keeps.
  '@opentelemetry/api': 'module.exports = {}',
  // With it `pino` writes in a thread, which nobody here asks for.
  'thread-stream': 'module.exports = class {}',
  // Not before the first upgrade, or the first answer of a device that needs tolerance.
  'http-proxy-3': `exports.createProxyServer = (options) => require('http-proxy-3').createProxyServer(options)`,
  // `pino` asks whether it is the main thread that it runs in, which it is.
  worker_threads: 'exports.isMainThread = true',
  // `commander` loads it for subcommands that are programs of their own, which ours are not.
  'node:child_process': `
    module.exports = new Proxy({}, { get: (_, name) => process.getBuiltinModule('node:child_process')[name] })
  `,
}

/** Marks what stands in the place of a package; what that itself imports is the package. */
const MARK = '\0slim:'

export const slimPackages: Plugin = {
  name: 'slim packages',
  resolveId: (name, importer) => (name in SLIM && !importer?.startsWith(MARK) ? `${MARK}${name}` : null),
  load: (id) => (id.startsWith(MARK) ? (SLIM[id.slice(MARK.length)] ?? null) : null),
}
