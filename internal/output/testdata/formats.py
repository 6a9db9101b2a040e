"""Reads the files of one solution with NumPy and VTK and compares every array by bits.

formats.py DIRECTORY: there are u.npy, u.vti and so on, and the expected values of each array as NAME.expected (raw,
little-endian). It prints what it compared, a line for each file, and fails at the first difference.
"""

import importlib
import os
import sys
import xml.etree.ElementTree as ElementTree

import numpy
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import (
    vtkXMLImageDataReader,
    vtkXMLPolyDataReader,
    vtkXMLUnstructuredGridReader,
)

READERS = {"vti": vtkXMLImageDataReader, "vtu": vtkXMLUnstructuredGridReader, "vtp": vtkXMLPolyDataReader}


def read(name):
    """Returns the data set of a VTK file."""
    reader = READERS[name.rsplit(".", 1)[1]]()
    assert reader.CanReadFile(name), name
    reader.SetFileName(name)
    reader.Update()
    assert reader.GetErrorCode() == 0, name
    return reader.GetOutput()


def arrays(data):
    """Returns the arrays of point or cell data by name."""
    return {data.GetArrayName(i): vtk_to_numpy(data.GetArray(i)) for i in range(data.GetNumberOfArrays())}


def same(name, got, want):
    """Fails unless two arrays have the same type and bits."""
    assert got.dtype == want.dtype, f"{name}: {got.dtype}, not {want.dtype}"
    assert got.size == want.size, f"{name}: {got.size} values, not {want.size}"
    assert got.tobytes() == want.tobytes(), f"{name}: other values"


def expected():
    """Returns the expected arrays, x fastest."""
    kinds = {"contact": "|u1"}
    names = [f[: -len(".expected")] for f in os.listdir(".") if f.endswith(".expected")]
    return {n: numpy.fromfile(n + ".expected", kinds.get(n, "<f8")) for n in names}


def fields(name, got, want, without=()):
    """Fails unless got has exactly the expected arrays."""
    assert set(got) == set(want) - set(without), f"{name}: {sorted(got)}, not {sorted(want)}"
    for key, values in got.items():
        same(f"{name} {key}", values, want[key])


def grids(want, n):
    """Compares .vti and .vtu, and the positions of their points."""
    image, mesh = read("u.vti"), read("u.vtu")
    for name, data in (("u.vti", image), ("u.vtu", mesh)):
        fields(name, arrays(data.GetPointData()), {k: v for k, v in want.items() if k != "positions"})
        print(name, data.GetClassName(), *sorted(arrays(data.GetPointData())))
    same("u.vtu positions", vtk_to_numpy(mesh.GetPoints().GetData()).ravel(), want["positions"])
    at = numpy.array([image.GetPoint(i) for i in range(image.GetNumberOfPoints())]).ravel()
    assert numpy.allclose(at, want["positions"], rtol=0, atol=1e-12), "u.vti positions"
    used = [k for k in n if k > 1]
    assert mesh.GetNumberOfCells() == numpy.prod([k - 1 for k in used])
    kind = {1: 3, 2: 9, 3: 12}[len(used)]
    contact = want["contact"]
    for c in range(mesh.GetNumberOfCells()):
        cell = mesh.GetCell(c)
        assert cell.GetCellType() == kind
        corners = [cell.GetPointId(i) for i in range(cell.GetNumberOfPoints())]
        assert len(set(corners)) == 2 ** len(used)
        sides = {int(contact[i]) for i in corners}
        inside = sides.pop() if len(sides) == 1 else 0
        assert arrays(mesh.GetCellData())["contact"][c] == inside, f"u.vtu: contact of cell {c}"
    if len(used) == 3:
        volumes(mesh)


def volumes(mesh):
    """Fails unless every hexahedron has the volume of a cell, which has the wrong sign for a wrong order of corners."""
    from vtkmodules.vtkFiltersVerdict import vtkCellSizeFilter

    sizes = vtkCellSizeFilter()
    sizes.SetInputData(mesh)
    sizes.Update()
    volume = arrays(sizes.GetOutput().GetCellData())["Volume"]
    bounds = mesh.GetBounds()
    whole = (bounds[1] - bounds[0]) * (bounds[3] - bounds[2]) * (bounds[5] - bounds[4])
    assert numpy.allclose(volume, whole / mesh.GetNumberOfCells()), "u.vtu: volumes"


def surface(want, dimension):
    """Checks the free boundary: in 3-D it is closed and its normals point away from the contact set."""
    data = read("u.vtp")
    points, cells = arrays(data.GetPointData()), arrays(data.GetCellData())
    assert set(points) == {"u", "obstacle", "upper"}, sorted(points)
    assert set(cells["contact"]) == set(want["contact"]) - {0}
    if dimension == 3:
        from vtkmodules.vtkFiltersCore import vtkFeatureEdges, vtkMassProperties

        edges = vtkFeatureEdges()
        edges.SetInputData(data)
        edges.FeatureEdgesOff()
        edges.ManifoldEdgesOff()
        edges.Update()
        assert edges.GetOutput().GetNumberOfCells() == 0, "u.vtp is not closed"
        mass = vtkMassProperties()
        mass.SetInputData(data)
        mass.Update()
        assert mass.GetVolume() > 0
    print("u.vtp", data.GetClassName(), data.GetNumberOfPoints(), "points", data.GetNumberOfCells(), "cells")


def xdmf(want, n):
    """Compares the arrays to which u.xdmf refers, read by NumPy and by the readers that VTK has."""
    tree = ElementTree.parse("u.xdmf")
    for attribute in tree.iter("Attribute"):
        item = attribute.find("DataItem")
        name = attribute.get("Name")
        array = numpy.load(item.text, mmap_mode="r")
        same("u.xdmf " + name, numpy.ascontiguousarray(array).ravel(), want[name])
        assert array.offset == int(item.get("Seek"))
    readers = xdmf_readers()
    for make in readers:
        reader = make()
        reader.SetFileName(os.path.abspath("u.xdmf"))
        reader.Update()
        data = reader.GetOutputDataObject(0)
        while data.GetClassName() == "vtkMultiBlockDataSet":
            data = data.GetBlock(0)
        assert list(data.GetDimensions()) == list(n), data.GetDimensions()
        assert data.GetSpacing() == read("u.vti").GetSpacing(), data.GetSpacing()
        assert data.GetOrigin() == read("u.vti").GetOrigin(), data.GetOrigin()
        fields("u.xdmf", arrays(data.GetPointData()), {k: v for k, v in want.items() if k != "positions"})
    print("u.xdmf", "NumPy", *[r.__name__ for r in readers])
    if not readers:
        print("u.xdmf: NOT OPENED BY VTK, which has no reader of XDMF here; python3-paraview has")


def xdmf_readers():
    """Returns VTK's readers of XDMF.

    Debian's python3-vtk9 has none, its python3-paraview, which conflicts with it, has both. meshio reads neither
    structured grids nor an offset in a binary file.
    """
    readers = []
    for module, name in (("vtkIOXdmf2", "vtkXdmfReader"), ("vtkIOXdmf3", "vtkXdmf3Reader")):
        try:
            readers.append(getattr(importlib.import_module("vtkmodules." + module), name))
        except ImportError:
            pass
    return readers


def main():
    os.chdir(sys.argv[1])
    want = expected()
    u = numpy.load("u.npy")
    same("u.npy", u.ravel(), want["u"])
    n = (list(u.shape[::-1]) + [1, 1])[:3]
    print("u.npy", u.dtype, u.shape)
    grids(want, n)
    surface(want, u.ndim)
    xdmf(want, n)


main()
