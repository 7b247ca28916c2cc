"""Checks that conversions from HDF5 to HDF5 keep all content.

    hdf5_same.py build FOLDER       writes files that use every feature of HDF5, and prints their names
    hdf5_same.py compare A B        prints the differences between two files, and fails if there are any
    hdf5_same.py check FOLDER TET   builds, converts with the program TET, compares
    hdf5_same.py dangling FILE      writes a file with references to a deleted object
    hdf5_same.py edit FILE          changes everything in a file with h5py, and reads it back
    hdf5_same.py mutants FOLDER     changes a file in one way at a time, and fails if a change is not noticed

The comparison covers everything that h5py's low-level interface can reach: links, types, spaces, creation properties,
attributes, values. Objects are identified by address, so two paths to one object must remain so.
"""
import ctypes, os, shutil, subprocess, sys

import h5py
import numpy as np
from h5py import h5a, h5d, h5l, h5o, h5p, h5r, h5s, h5t

from hdf5_files import FILES, dangling


def describe(tid):
    """Everything that libhdf5 reports about a type."""
    c = tid.get_class()
    told = {"class": c, "size": tid.get_size()}
    for name in ["order", "precision", "offset", "pad", "sign", "fields", "ebias", "norm", "inpad", "strpad", "cset", "tag", "array_dims"]:
        if c == h5t.VLEN or (c == h5t.ENUM and name != "order"):
            continue
        try:
            told[name] = getattr(tid, f"get_{name}")()
        except (AttributeError, TypeError, ValueError, RuntimeError):
            pass
    if c == h5t.STRING:
        told["variable"] = tid.is_variable_str()
    if c in (h5t.VLEN, h5t.ARRAY, h5t.ENUM):
        told["base"] = describe(tid.get_super())
    if c == h5t.COMPOUND:
        told["members"] = [
            (tid.get_member_name(n), tid.get_member_offset(n), describe(tid.get_member_type(n))) for n in range(tid.get_nmembers())
        ]
    if c == h5t.ENUM:
        told["members"] = [(tid.get_member_name(n), tid.get_member_value(n)) for n in range(tid.get_nmembers())]
    return told


def has_pointers(tid):
    c = tid.get_class()
    if c in (h5t.VLEN, h5t.REFERENCE):
        return True
    if c == h5t.STRING:
        return tid.is_variable_str()
    if c == h5t.ARRAY:
        return has_pointers(tid.get_super())
    if c == h5t.COMPOUND:
        return any(has_pointers(tid.get_member_type(n)) for n in range(tid.get_nmembers()))
    return False


def space_of(space):
    kind = space.get_simple_extent_type()
    if kind != h5s.SIMPLE:
        return kind
    return kind, space.get_simple_extent_dims(), space.get_simple_extent_dims(True)


def order_of(plist, what):
    return getattr(plist, f"get_{what}_creation_order")()


def libhdf5():
    """The libhdf5 that h5py has loaded, because h5py's get_comment returns freed memory."""
    for line in open("/proc/self/maps"):
        path = line.split()[-1]
        if "libhdf5" in path and "_hl" not in path:
            library = ctypes.CDLL(path)
            library.H5Oget_comment.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t]
            library.H5Oget_comment.restype = ctypes.c_ssize_t
            return library
    raise RuntimeError("no libhdf5 is loaded")


LIBRARY = libhdf5()


def comment(x):
    size = LIBRARY.H5Oget_comment(x.id, None, 0)
    text = ctypes.create_string_buffer(size + 1)
    assert LIBRARY.H5Oget_comment(x.id, text, size + 1) == size
    return text.value


class Comparison:
    def __init__(self, a, b, skip=()):
        self.files = [h5py.File(a, "r"), h5py.File(b, "r")]
        self.same, self.pending, self.differences, self.count = {}, [], [], 0
        # Values may refer to objects that are visited later.
        self.late = []
        self.skip = set(skip)
        self.objects("/", *(h5o.open(f.id, b"/") for f in self.files))
        while self.pending:
            self.visit(*self.pending.pop())
        self.first = {b: a for a, b in self.same.items()}
        for values in self.late:
            self.values(*values)

    def check(self, path, what, a, b):
        self.count += 1
        if what.split(":")[0] in self.skip:
            return
        if a != b and not (isinstance(a, float) and a != a and b != b):
            self.differences.append(f"{path}: {what}: {str(a)[:300]} became {str(b)[:300]}")

    def objects(self, path, a, b):
        """Compares two objects. Each is visited once."""
        ids = [h5o.get_info(x).addr for x in (a, b)]
        if ids[0] in self.same:
            self.check(path, "object", self.same[ids[0]], ids[1])
            return
        if ids[1] in self.same.values():
            self.differences.append(f"{path}: two objects became one")
        self.same[ids[0]] = ids[1]
        self.pending.append((path, a, b))

    def visit(self, path, a, b):
        infos = [h5o.get_info(x) for x in (a, b)]
        self.check(path, "kind", *(i.type for i in infos))
        self.check(path, "reference count", *(i.rc for i in infos))
        self.check(path, "comment", *(comment(x) for x in (a, b)))
        if infos[0].type != infos[1].type:
            return
        {h5o.TYPE_GROUP: self.group, h5o.TYPE_DATASET: self.dataset, h5o.TYPE_NAMED_DATATYPE: self.types}[infos[0].type](path, a, b)
        self.attributes(path, a, b)

    def group(self, path, a, b):
        plists = [x.get_create_plist() for x in (a, b)]
        self.check(path, "link order", *(order_of(p, "link") for p in plists))
        self.check(path, "attribute order", *(order_of(p, "attr") for p in plists))
        kinds = [h5py.h5.INDEX_NAME] + ([h5py.h5.INDEX_CRT_ORDER] if all(order_of(p, "link") & h5p.CRT_ORDER_INDEXED for p in plists) else [])
        for kind in kinds:
            names = []
            for x in (a, b):
                found = []
                x.links.iterate(found.append, idx_type=kind)
                names.append(found)
            self.check(path, f"names:{kind}", *names)
        for name in set(names[0]) & set(names[1]):
            below = f"{path.rstrip('/')}/{name.decode()}"
            infos = [x.links.get_info(name) for x in (a, b)]
            self.check(below, "link", *(i.type for i in infos))
            self.check(below, "charset of the name", *(i.cset for i in infos))
            if infos[0].type != infos[1].type:
                continue
            if infos[0].type == h5l.TYPE_HARD:
                self.objects(below, *(h5o.open(x, name) for x in (a, b)))
            else:
                self.check(below, "target", *(x.links.get_val(name) for x in (a, b)))

    def types(self, path, a, b):
        self.check(path, "type", describe(a), describe(b))
        self.check(path, "equal types", True, a == b)
        self.check(path, "committed", a.committed(), b.committed())
        if a.committed() and b.committed():
            self.objects(f"{path} (its type)", a, b)

    def dataset(self, path, a, b):
        tids = [x.get_type() for x in (a, b)]
        self.types(path, *tids)
        self.check(path, "space", *(space_of(x.get_space()) for x in (a, b)))
        self.creation(path, *(x.get_create_plist() for x in (a, b)), tids[0])
        if tids[0].get_class() == h5t.STRING and a.get_space().get_simple_extent_type() != h5s.NULL:
            self.check(path, "text fill", *(h5py.Dataset(x).fillvalue for x in (a, b)))
        if not a.get_create_plist().all_filters_avail():
            starts = [a.get_chunk_info(n).chunk_offset for n in range(a.get_num_chunks())]
            self.check(path, "stored chunks", *([x.read_direct_chunk(start) for start in starts] for x in (a, b)))
            self.check(path, "number of chunks", a.get_num_chunks(), b.get_num_chunks())
        elif a.get_space().get_simple_extent_type() != h5s.NULL:
            self.late.append((path, tids, lambda x, out, tid: x.read(h5s.ALL, h5s.ALL, out, tid), a, b))

    def creation(self, path, a, b, tid):
        self.check(path, "layout", a.get_layout(), b.get_layout())
        if a.get_layout() == b.get_layout() == h5d.CHUNKED:
            self.check(path, "chunk", a.get_chunk(), b.get_chunk())
        self.check(path, "filters", *([p.get_filter(n) for n in range(p.get_nfilters())] for p in (a, b)))
        self.check(path, "fill_value_defined", a.fill_value_defined(), b.fill_value_defined())
        for what in ["get_fill_time", "get_alloc_time", "get_attr_creation_order", "get_external_count"]:
            self.check(path, what, *(getattr(p, what)() for p in (a, b)))
        # NumPy lacks integers and floats of unusual sizes.
        is_number = tid.get_class() in (h5t.INTEGER, h5t.FLOAT) and tid.get_size() in (1, 2, 4, 8)
        if is_number and tid.get_precision() == 8 * tid.get_size() and a.fill_value_defined():
            fills = []
            for p in (a, b):
                value = np.zeros((), tid.dtype)
                p.get_fill_value(value)
                fills.append(value.tobytes())
            self.check(path, "fill value", *fills)
        if a.get_layout() == h5d.VIRTUAL and b.get_layout() == h5d.VIRTUAL:
            told = []
            for p in (a, b):
                told.append([
                    (p.get_virtual_filename(n), p.get_virtual_dsetname(n), selection(p.get_virtual_srcspace(n)), selection(p.get_virtual_vspace(n)))
                    for n in range(p.get_virtual_count())
                ])
            self.check(path, "virtual sources", *told)

    def values(self, path, tids, read, a, b):
        told = []
        for x, tid in ((a, tids[0]), (b, tids[1])):
            out = read_values(x, lambda out, tid: read(x, out, tid))
            told.append(self.plain(path, x, out) if has_pointers(tid) else out.tobytes())
        self.check(path, "values", *told)

    def plain(self, path, owner, value):
        """The values, with references replaced by the address of their target in the first file."""
        if isinstance(value, np.ndarray):
            if value.dtype.names:
                return [tuple(self.plain(path, owner, row[name]) for name in value.dtype.names) for row in value.reshape(-1)]
            return [self.plain(path, owner, item) for item in value.reshape(-1)]
        if isinstance(value, (h5r.Reference, h5r.RegionReference)):
            if not value:
                return "null"
            target = h5r.dereference(value, owner)
            address = h5o.get_info(target).addr
            is_second = h5py.h5i.get_file_id(owner).name.decode() == self.files[1].filename
            told = ("to", self.first.get(address, "another object") if is_second else address)
            if isinstance(value, h5r.RegionReference):
                told += (selection(h5r.get_region(value, owner)),)
            return told
        if isinstance(value, np.void) and value.dtype.names:
            return tuple(self.plain(path, owner, value[name]) for name in value.dtype.names)
        return repr(value)

    def attributes(self, path, a, b):
        names = []
        for x in (a, b):
            found = []
            h5a.iterate(x, lambda name, *_: found.append(name), index_type=h5py.h5.INDEX_NAME)
            names.append(found)
        self.check(path, "attributes", *names)
        plists = [x.get_create_plist() for x in (a, b) if hasattr(x, "get_create_plist")]
        if plists and all(order_of(p, "attr") & h5p.CRT_ORDER_TRACKED for p in plists):
            orders = []
            for x in (a, b):
                found = []
                h5a.iterate(x, lambda name, *_: found.append(name), index_type=h5py.h5.INDEX_CRT_ORDER)
                orders.append(found)
            self.check(path, "attributes in order", *orders)
        for name in set(names[0]) & set(names[1]):
            at = f"{path}@{name.decode()}"
            own = [h5a.open(x, name) for x in (a, b)]
            tids = [x.get_type() for x in own]
            self.types(at, *tids)
            self.check(at, "space", *(space_of(x.get_space()) for x in own))
            self.check(at, "charset", *(h5a.get_info(x, name).cset for x in (a, b)))
            if own[0].get_space().get_simple_extent_type() != h5s.NULL and own[1].get_space().get_simple_extent_type() != h5s.NULL:
                self.late.append((at, tids, lambda x, out, tid: x.read(out, tid), *own))


def selection(space):
    kind = space.get_select_type()
    if kind == h5s.SEL_POINTS:
        return kind, space.get_select_elem_pointlist().tolist()
    if kind == h5s.SEL_HYPERSLABS:
        return kind, sorted(map(str, space.get_select_hyper_blocklist().tolist()))
    return kind


def retype(f, name, tid):
    """Replaces a dataset by one with the same values in another type."""
    values = f[name][()]
    del f[name]
    f.create_dataset(name, data=values, dtype=tid)


def relink(f, name):
    """Replaces a link by a copy."""
    target = f[name]
    del f[name]
    f.copy(target, name)


def reattribute(f, name, value, **options):
    del f.attrs[name]
    f.attrs.create(name, value, **options)


MUTANTS = {
    "links.h5": {
        "a copy of a dataset": lambda f: relink(f, "again3"),
        "a copy of a group": lambda f: relink(f, "z/g2"),
        "a soft link to elsewhere": lambda f: (f.__delitem__("soft"), f.__setitem__("soft", h5py.SoftLink("/g/deep"))),
        "an external link to elsewhere": lambda f: (f.__delitem__("missing"), f.__setitem__("missing", h5py.ExternalLink("missing.h5", "/a"))),
        "a link less": lambda f: f.__delitem__("dangling"),
        "another value": lambda f: f["big"].__setitem__(99_999, -1),
    },
    "references.h5": {
        "a null reference": lambda f: f["refs"].__setitem__(1, h5py.Reference()),
        "a reference to another object": lambda f: f["refs"].__setitem__(1, f["a"].ref),
        "another region": lambda f: f.attrs.modify("region", f["a"].regionref[:2, 1:5]),
        "a reference in a list": lambda f: f["lists"].__setitem__(2, np.array([f["a"].ref], dtype=h5py.ref_dtype)),
        "a scale less": lambda f: f["a"].dims[0].detach_scale(f["y"]),
    },
    "types.h5": {
        "another byte order": lambda f: retype(f, "i2be", "<i2"),
        "another charset": lambda f: reattribute(f, "s_term_utf8", np.bytes_(b"t0")),
        "fixed text": lambda f: reattribute(f, "empty text", np.bytes_(b"x")),
        "no longer empty": lambda f: reattribute(f, "empty", np.zeros(0, "f4")),
        "an array for a scalar": lambda f: reattribute(f, "scalar", np.array([1.5], "f4")),
        "another name of a value": lambda f: retype(f, "e8", h5py.enum_dtype({"A": 1, "C": 2}, basetype="u1")),
    },
    "named.h5": {
        "a type of its own": lambda f: retype(f, "typed", f["t/point"].dtype),
        "an attribute's type": lambda f: reattribute(f, "number", 5, dtype=">i2"),
        "a type less": lambda f: f.__delitem__("t/alias"),
        "no attribute of a type": lambda f: f["t/point"].attrs.__delitem__("about"),
    },
    "new.h5": {
        "another comment": lambda f: h5o.set_comment(f["untracked3"].id, b"another"),
        "another order": lambda f: (f["indexed3"].__delitem__("d2"), f["indexed3"].__setitem__("d2", 2)),
        "another order of attributes": lambda f: (f["indexed3"].attrs.__delitem__("a2"), f["indexed3"].attrs.__setitem__("a2", "text 2")),
        "another fill": lambda f: refill(f, "most 0", fillvalue=5),
        "another chunk": lambda f: refill(f, "most 0", chunks=(7, 7)),
        "another limit": lambda f: refill(f, "most 0", maxshape=(None, 20)),
        "another filter": lambda f: refill(f, "most 0", compression="lzf"),
    },
}


def refill(f, name, **options):
    old = f[name]
    options = {"chunks": old.chunks, "maxshape": old.maxshape, **options}
    values = old[()]
    del f[name]
    f.create_dataset(name, data=values, **options)


def edit(path):
    """Continues writing to a file as any program does: adds and removes links and attributes, extends datasets."""
    with h5py.File(path, "r+") as f:
        groups, datasets = [f], []
        f.visititems(lambda name, node: (groups if isinstance(node, h5py.Group) else datasets).append(node))
        for group in groups:
            group.attrs["new attribute"] = "text"
            for n in range(12):
                group.create_group(f"new group {n}")
            group["new dataset"] = np.arange(3)
            for name in list(group.attrs)[:2]:
                del group.attrs[name]
        for node in datasets:
            node.attrs["new attribute"] = [1, 2, 3]
            if isinstance(node, h5py.Dataset) and node.maxshape and None in node.maxshape and not node.is_virtual:
                node.resize(node.shape[0] + 5, 0)
                node[-1] = node[0] if node.shape[0] > 5 else 1
        for group in groups:
            for name in list(group)[:3]:
                if name != "new dataset":
                    del group[name]
    with h5py.File(path) as f:
        f.visititems(lambda name, node: read(node))


def read(node):
    """Reads an object's attributes and values."""
    for name in node.attrs:
        attribute = node.attrs.get_id(name)
        if attribute.get_space().get_simple_extent_type() != h5s.NULL:
            read_values(attribute, attribute.read)
    if isinstance(node, h5py.Dataset) and node.shape is not None and node.id.get_create_plist().all_filters_avail():
        read_values(node.id, lambda out, tid: node.id.read(h5s.ALL, h5s.ALL, out, tid))


def read_values(owner, read):
    tid, shape = owner.get_type(), owner.get_space().get_simple_extent_dims()
    if has_pointers(tid):
        out = np.empty(shape, tid.dtype)
        read(out, h5t.py_create(out.dtype))
    else:
        out = np.empty(shape, f"V{tid.get_size()}")
        read(out, tid)
    return out


def mutants(folder):
    """Checks that every change is noticed."""
    missed = []
    for name, changes in MUTANTS.items():
        path, changed = f"{folder}/{name}", f"{folder}/mutant.h5"
        FILES[name](path, folder)
        for what, change in changes.items():
            shutil.copyfile(path, changed)
            with h5py.File(changed, "r+") as f:
                change(f)
            if not Comparison(path, changed).differences:
                missed.append(f"{name}: {what}")
    print("\n".join(missed))
    return bool(missed)


def check(folder, tet):
    os.makedirs(f"{folder}/elsewhere", exist_ok=True)
    failed = False
    for name, build in FILES.items():
        path, out = f"{folder}/{name}", f"{folder}/out-{name}"
        build(path, folder)
        run = subprocess.run([tet, "convert", path, out, "--force"], capture_output=True, text=True)
        print(f"{name}: exit {run.returncode}", run.stderr.strip().replace("\n", "\n  "))
        if run.returncode:
            failed = True
            continue
        skip = {"external.h5": ("get_external_count",)}.get(name, ())
        found = Comparison(path, out, skip)
        print(f"  {found.count} comparisons, {len(found.differences)} differences, {os.path.getsize(path)} bytes became {os.path.getsize(out)}")
        for line in found.differences[:40]:
            print("   ", line)
        failed |= bool(found.differences)
        if name == "block.h5":
            same = open(path, "rb").read(1024) == open(out, "rb").read(1024)
            print("  user block is", "the same" if same else "another")
            failed |= not same
    return failed


if __name__ == "__main__":
    if sys.argv[1] == "build":
        for name, build in FILES.items():
            build(f"{sys.argv[2]}/{name}", sys.argv[2])
            print(name)
    elif sys.argv[1] == "compare":
        found = Comparison(*sys.argv[2:4], skip=sys.argv[4:])
        print("\n".join(found.differences))
        print(f"{found.count} comparisons", file=sys.stderr)
        sys.exit(bool(found.differences))
    elif sys.argv[1] == "dangling":
        dangling(sys.argv[2])
    elif sys.argv[1] == "edit":
        edit(sys.argv[2])
    elif sys.argv[1] == "mutants":
        sys.exit(mutants(sys.argv[2]))
    else:
        sys.exit(check(sys.argv[2], sys.argv[3]))
