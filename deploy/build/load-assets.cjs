'use strict'
// The main script of the executable. Its assets are the files of the program: each is read and compiled when it is first needed, which is
// what Node does with files on a disk.
const { getAsset } = require('node:sea')
const { compileFunction } = require('node:vm')

const PARAMETERS = ['exports', 'require', 'module', '__filename']
const modules = new Map()

function load(name) {
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const module = { exports: {} }
  // Before it runs, because two files may need each other.
  modules.set(name, module)
  const run = compileFunction(getAsset(name, 'utf8'), PARAMETERS, { filename: name })
  run(module.exports, requireAny, module, __filename)
  return module.exports
}

function requireAny(id) {
  return id.startsWith('./') ? load(id.slice(2)) : require(id)
}

load('main.cjs')
