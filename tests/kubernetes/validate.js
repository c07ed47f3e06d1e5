// Checks Kubernetes objects, a JSON list on standard input, against the schemas of
// kubernetes-models. Prints a line for each fault. NODE_PATH names the folder of the packages.
//
// The schemas allow unknown fields. Their validators look at every field they know, so a field that
// nobody looked at is a misspelt one.
const { readFileSync } = require("fs");

function watched(value, path, unread) {
  if (value === null || typeof value !== "object") return value;
  const own = Array.isArray(value) ? [] : Object.keys(value);
  own.forEach((key) => unread.add(`${path}/${key}`));
  const children = {};
  return new Proxy(value, {
    get(target, key) {
      if (typeof key === "symbol" || !Object.hasOwn(target, key)) return target[key];
      unread.delete(`${path}/${key}`);
      return (children[key] ??= watched(target[key], `${path}/${key}`, unread));
    },
  });
}

function faults(object) {
  const [group, version] = object.apiVersion.includes("/")
    ? object.apiVersion.split("/") : ["", object.apiVersion];
  const { [object.kind]: Model } =
    require(["kubernetes-models", group, version, object.kind].filter(Boolean).join("/"));
  const unread = new Set();
  try {
    Model.prototype.validate.call(watched(object, "", unread));
  } catch (error) {
    return error.message.split("\n");
  }
  return [...unread].map((path) => `${path} is no field of ${object.kind}`);
}

for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  for (const fault of faults(object)) {
    console.log(`${object.kind} ${object.metadata.name}: ${fault}`);
  }
}
